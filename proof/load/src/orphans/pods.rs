//! Pods that do whatever makes a process hard to end.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::client::Client;

/// The variable that marks their processes.
pub(super) const MARK: &str = "NEAP_ORPHANS";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Ignores SIGTERM, and has a child in another session.
const STUBBORN: &str = "trap '' TERM; \
    if command -v setsid > /dev/null; then setsid sleep 86400 & else sleep 86400 & fi; \
    while :; do sleep 86400; done";

/// The pods of one `neap up`.
#[derive(Debug)]
pub(super) struct Pods {
    client: Client,
    mark: String,
}

impl Pods {
    pub(super) fn new(client: Client, mark: &str) -> Self {
        Self {
            client,
            mark: mark.to_owned(),
        }
    }

    pub(super) async fn create(&self) -> Result<()> {
        let mut connection = self.client.connect().await?;
        for pod in self.all() {
            let answer = connection.send(Method::POST, PODS, pod.to_string());
            answer.await?.success()?;
        }
        Ok(())
    }

    pub(super) async fn delete(&self) -> Result<()> {
        let mut connection = self.client.connect().await?;
        let answer = connection.send(Method::DELETE, PODS, "");
        answer.await?.success()?;
        Ok(())
    }

    pub(super) async fn all_run(&self) -> Result<bool> {
        let mut connection = self.client.connect().await?;
        let pods = connection.send(Method::GET, PODS, "").await?.success()?;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let runs = |pod: &Value| pod["status"]["phase"] == "Running";
        Ok(pods.len() == self.all().len() && pods.iter().all(runs))
    }

    fn all(&self) -> [Value; 4] {
        let plain = self.container("main", &["sleep", "86400"]);
        let stubborn = self.container("main", &["sh", "-c", STUBBORN]);
        let mut sidecar = self.container("side", &["sh", "-c", STUBBORN]);
        sidecar["restartPolicy"] = json!("Always");
        let first = self.container("first", &["sleep", "0.1"]);
        // A command next to the container, which runs as long as the container lives.
        let mut asked = plain.clone();
        asked["livenessProbe"] = json!({
            "exec": {"command": ["sleep", "86400"]}, "timeoutSeconds": 86400,
        });
        let others = json!([first, sidecar]);
        [
            pod("plain", &json!([]), &plain),
            pod("stubborn", &json!([]), &stubborn),
            pod("many", &others, &stubborn),
            pod("asked", &json!([]), &asked),
        ]
    }

    fn container(&self, name: &str, command: &[&str]) -> Value {
        json!({
            "name": name, "image": "busybox", "command": command,
            "env": [{"name": MARK, "value": self.mark}],
        })
    }
}

fn pod(name: &str, before: &Value, container: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"initContainers": before, "containers": [container]},
    })
}
