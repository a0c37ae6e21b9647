//! The activator of Knative Serving in front of a pod.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    environment::{self, NAMESPACE, TestEnvironment},
    kinds,
    pod::Pod,
    proxy::Proxy,
};

pub(super) const NAME: &str = "activator";
/// Its port, at all addresses, which cannot be configured.
const PORT: u16 = 8012;
const SYSTEM: &str = "knative-serving";
const REVISIONS: &str = "/apis/serving.knative.dev/v1/namespaces/bench/revisions";

/// Starts it next to the API server that has its revision, its endpoints and its configuration.
pub(super) async fn start(
    program: &Path,
    environment: &TestEnvironment,
    pod: &Pod,
) -> Result<Proxy> {
    objects(environment, pod).await?;
    let http = SocketAddr::from(([127, 0, 0, 1], PORT));
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("KUBECONFIG", environment.kubeconfig())
        // As in its manifest.
        .env("GOGC", "500")
        .env("POD_NAME", "activator")
        .env("POD_IP", "127.0.0.1")
        .env("SYSTEM_NAMESPACE", SYSTEM)
        .env("CONFIG_LOGGING_NAME", "config-logging")
        .env("CONFIG_OBSERVABILITY_NAME", "config-observability")
        .env("METRICS_DOMAIN", "knative.dev/internal/serving");
    Proxy::start(NAME, &mut command, http, None).await
}

async fn objects(environment: &TestEnvironment, pod: &Pod) -> Result<()> {
    let mut api = environment.connect().await?;
    kinds::define(&mut api, "serving.knative.dev", "v1", "Revision").await?;
    environment::wait_until_served(&mut api, REVISIONS).await?;
    let namespace = json!({"metadata": {"name": SYSTEM}});
    environment::create(&mut api, "/api/v1/namespaces", &namespace).await?;
    let configs = format!("/api/v1/namespaces/{SYSTEM}/configmaps");
    for (name, data) in configuration() {
        let config = json!({"metadata": {"name": name}, "data": data});
        environment::create(&mut api, &configs, &config).await?;
    }
    let revision = json!({
        "apiVersion": "serving.knative.dev/v1", "kind": "Revision",
        "metadata": {"name": "web"},
        "spec": {
            "containerConcurrency": 0, "timeoutSeconds": 300,
            "containers": [{"name": "user-container", "image": "pod"}],
        },
    });
    let revision = environment::create(&mut api, REVISIONS, &revision).await?;
    let endpoints = endpoints(&revision, pod.http);
    let path = format!("/api/v1/namespaces/{NAMESPACE}/endpoints");
    environment::create(&mut api, &path, &endpoints).await?;
    Ok(())
}

/// The default configuration, without tracing and with errors only in the log.
fn configuration() -> [(&'static str, Value); 4] {
    let logging = json!({"zap-logger-config": json!({
        "level": "error", "encoding": "json",
        "outputPaths": ["stdout"], "errorOutputPaths": ["stderr"],
    }).to_string()});
    [
        ("config-logging", logging),
        ("config-observability", json!({})),
        ("config-network", json!({})),
        ("config-tracing", json!({"backend": "none"})),
    ]
}

/// The endpoints of the revision's private service, which the activator uses.
fn endpoints(revision: &Value, pod: SocketAddr) -> Value {
    json!({
        "metadata": {"name": "web-private", "labels": {
            "serving.knative.dev/revision": "web",
            "serving.knative.dev/revisionUID": revision["metadata"]["uid"],
            "networking.internal.knative.dev/serviceType": "Private",
        }},
        "subsets": [{
            "addresses": [{"ip": pod.ip()}],
            "ports": [{"name": "http", "port": pod.port()}],
        }],
    })
}
