//! The interceptor of KEDA's HTTP add-on in front of a pod.

use std::{path::Path, process::Command};

use anyhow::Result;
use serde_json::json;

use super::{
    environment::{self, NAMESPACE, TestEnvironment},
    kinds,
    pod::Pod,
    proxy::Proxy,
};
use crate::logged_process::free;

pub(super) const NAME: &str = "interceptor";
const ROUTES: &str = "/apis/http.keda.sh/v1alpha1/namespaces/bench/httpscaledobjects";

/// Starts it next to the API server that has its route and its endpoints.
pub(super) async fn start(
    program: &Path,
    environment: &TestEnvironment,
    pod: &Pod,
) -> Result<Proxy> {
    objects(environment, pod).await?;
    let (http, admin) = (free()?, free()?);
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("KUBECONFIG", environment.kubeconfig())
        .env("KEDA_HTTP_CURRENT_NAMESPACE", NAMESPACE)
        .env("KEDA_HTTP_PROXY_PORT", http.port().to_string())
        .env("KEDA_HTTP_ADMIN_PORT", admin.port().to_string())
        .env("OTEL_PROM_EXPORTER_PORT", free()?.port().to_string())
        // Without this it does not keep enough idle connections.
        .env("KEDA_HTTP_MAX_IDLE_CONNS", "1000")
        .env("KEDA_HTTP_MAX_IDLE_CONNS_PER_HOST", "1000")
        // It connects to host names, which do not resolve here; with a proxy setting it does not
        // resolve them.
        .env("HTTP_PROXY", format!("http://{}", pod.http));
    Proxy::start(NAME, &mut command, http, None).await
}

async fn objects(environment: &TestEnvironment, pod: &Pod) -> Result<()> {
    let mut api = environment.connect().await?;
    kinds::define(&mut api, "http.keda.sh", "v1alpha1", "HTTPScaledObject").await?;
    environment::wait_until_served(&mut api, ROUTES).await?;
    let route = json!({
        "apiVersion": "http.keda.sh/v1alpha1", "kind": "HTTPScaledObject",
        "metadata": {"name": "web"},
        "spec": {
            "hosts": ["web.bench"],
            "scaleTargetRef": {
                "name": "web", "kind": "Deployment", "apiVersion": "apps/v1",
                "service": "web", "port": 80,
            },
        },
    });
    environment::create(&mut api, ROUTES, &route).await?;
    let slice = json!({
        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": pod.http.port()}],
        "endpoints": [{"addresses": [pod.http.ip()], "conditions": {"ready": true}}],
    });
    environment::create(&mut api, environment::SLICES, &slice).await?;
    Ok(())
}
