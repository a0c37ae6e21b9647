//! HAProxy in front of a pod.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use anyhow::Result;

use super::{
    pod::Pod,
    proxy::{Proxy, Tcp},
};
use crate::logged_process::free;

pub(super) const NAME: &str = "haproxy";

/// Starts it with its files in `folder`.
pub(super) async fn start(program: &Path, folder: &Path, pod: &Pod) -> Result<Proxy> {
    let (http, echo, source) = (free()?, free()?, free()?);
    let tcp = Tcp { echo, source };
    let file = folder.join("haproxy.cfg");
    fs::write(&file, config(http, tcp, pod))?;
    let mut command = Command::new(program);
    // In the foreground, as one process.
    command.arg("-db").arg("-f").arg(&file);
    Proxy::start(NAME, &mut command, http, Some(tcp)).await
}

/// With keep-alive on both sides, no logs, and X-Forwarded headers, as in ours.
fn config(http: SocketAddr, tcp: Tcp, pod: &Pod) -> String {
    let Tcp { echo, source } = tcp;
    format!(
        "global
  maxconn 8000
defaults
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen http
  mode http
  bind {http} backlog 4096
  option http-keep-alive
  option forwardfor
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-reuse always
  server pod {pod_http}
listen echo
  mode tcp
  bind {echo} backlog 4096
  server pod {pod_echo}
listen source
  mode tcp
  bind {source} backlog 4096
  server pod {pod_source}
",
        pod_http = pod.http,
        pod_echo = pod.echo,
        pod_source = pod.source,
    )
}
