//! nginx in front of a pod.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use anyhow::Result;

use super::{pod::Pod, proxy::Proxy};
use crate::logged_process::free;

pub(super) const NAME: &str = "nginx";

/// Starts it with its files in `folder`.
pub(super) async fn start(program: &Path, folder: &Path, pod: &Pod) -> Result<Proxy> {
    let http = free()?;
    let file = folder.join("nginx.conf");
    fs::write(&file, config(folder, http, pod))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    command.args(["-e", "stderr"]);
    Proxy::start(NAME, &mut command, http, None).await
}

/// With keep-alive on both sides, no logs, and X-Forwarded headers, as in ours.
fn config(folder: &Path, http: SocketAddr, pod: &Pod) -> String {
    let (folder, pod) = (folder.display(), pod.http);
    format!(
        "daemon off;
worker_processes auto;
pid {folder}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream pod {{ server {pod}; keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen {http} backlog=4096;
    location / {{
      proxy_pass http://pod;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"
    )
}
