//! How soon a newcomer sees an accepted release: the example, applied to `neap up`.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{
    client::Connection, measure::Figure, measure::median, server::Server, stopwatch::Stopwatch,
};

const EXAMPLE: &str = include_str!("../../../../examples/release/release.yaml");
/// The address of the registry in the example.
const EXAMPLE_REGISTRY: &str = "127.1.0.5:5000";
const APPLY: &str = "application/apply-patch+yaml";
const PAYLOADS: &str = "/apis/release.openshift.io/v1alpha1/namespaces/releases/releasepayloads";
/// Bounds the wait for a kind to be served, and for the verdict.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);
/// The time between two requests.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// From the first request of `kubectl apply -f examples/release/` to an accepted payload.
pub async fn example(neap: &Path, times: usize) -> Result<Vec<Figure>> {
    let mut accepted = Vec::new();
    for _ in 0..times {
        let neap = neap.to_owned();
        let server =
            tokio::task::spawn_blocking(move || Server::start_whole(&neap, None)).await??;
        let example = EXAMPLE.replace(EXAMPLE_REGISTRY, server.registry()?);
        let mut connection = server.client()?.connect().await?;
        let watch = Stopwatch::start();
        let applied = async {
            for document in example.split("\n---\n") {
                apply(&mut connection, document).await?;
            }
            until_accepted(&mut connection).await
        };
        timeout(WAIT_TIMEOUT, applied)
            .await
            .context("no payload is accepted")??;
        accepted.push(watch.elapsed().as_secs_f64());
        let (status, complaints) = tokio::task::spawn_blocking(|| server.stop()).await??;
        anyhow::ensure!(status.success(), "it ended with {status}: {complaints}");
    }
    let worst = accepted.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        ("accepted", median(accepted)?),
        ("accepted worst", worst),
    ])
}

/// Applies a document, once its kind is served.
async fn apply(connection: &mut Connection, document: &str) -> Result<()> {
    let path = format!("{}?fieldManager=bench&force=true", path(document)?);
    loop {
        let body = document.to_owned();
        let answer = connection
            .send_as(Method::PATCH, &path, APPLY, body)
            .await?;
        if answer.status != 404 {
            return answer.success().map(drop);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The path of the object of a document.
fn path(document: &str) -> Result<String> {
    let value = |key: &str| {
        let mut lines = document.lines();
        let found = lines.find_map(|line| line.strip_prefix(key));
        found.map(|value| value.trim_matches('"'))
    };
    let kind = value("kind: ").context("a document without a kind")?;
    let name = value("  name: ").context("a document without a name")?;
    let (group, resource) = match kind {
        "Namespace" => return Ok(format!("/api/v1/namespaces/{name}")),
        "ServiceAccount" => ("/api/v1", "serviceaccounts"),
        "ConfigMap" => ("/api/v1", "configmaps"),
        "Role" => ("/apis/rbac.authorization.k8s.io/v1", "roles"),
        "RoleBinding" => ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        "ImageStream" => ("/apis/image.openshift.io/v1", "imagestreams"),
        other => bail!("the example has a {other}"),
    };
    let namespace = value("  namespace: ").context("a document without a namespace")?;
    Ok(format!("{group}/namespaces/{namespace}/{resource}/{name}"))
}

async fn until_accepted(connection: &mut Connection) -> Result<()> {
    loop {
        let answer = connection.send(Method::GET, PAYLOADS, "").await?;
        if answer.status == 200 && is_any_accepted(&answer.json()?) {
            return Ok(());
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn is_any_accepted(payloads: &Value) -> bool {
    let all = payloads["items"].as_array().into_iter().flatten();
    let mut conditions = all.filter_map(|it| it["status"]["conditions"].as_array());
    conditions.any(|all| {
        all.iter()
            .any(|it| it["type"] == "PayloadAccepted" && it["status"] == "True")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_of_the_example_has_a_path() {
        let paths: Result<Vec<_>> = EXAMPLE.split("\n---\n").map(path).collect();
        let paths = paths.unwrap();
        assert_eq!(paths[0], "/api/v1/namespaces/releases");
        assert!(
            paths.last().unwrap().ends_with("/imagestreams/4.21-latest"),
            "{paths:?}"
        );
    }

    #[test]
    fn only_an_accepted_payload_ends_the_wait() {
        let payloads = |status: &str| {
            json!({"items": [{"status": {"conditions": [
                {"type": "PayloadCreated", "status": "True"},
                {"type": "PayloadAccepted", "status": status},
            ]}}]})
        };
        assert!(is_any_accepted(&payloads("True")));
        assert!(!is_any_accepted(&payloads("Unknown")));
        assert!(!is_any_accepted(&json!({"items": []})));
    }
}
