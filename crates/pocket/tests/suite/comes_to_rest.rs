//! Every kind comes to rest: a repeated write changes nothing.
//!
//! Controllers apply the same configuration for ever and stop because the revision stays. A
//! default, an allocation or a generated field that is not stable under apply, update or patch
//! would keep them busy; this checks each kind with all three.

use crate::support::paused::time_passes;
use http::{Request, StatusCode};
use kube::client::Body;
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use std::time::Duration;

const KINDS: &str = include_str!("../data/one_of_each.yaml");

struct Server(kube::Client);

impl Server {
    async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind);
        let body = Body::from(body.to_string().into_bytes());
        let request = request.body(body).expect("a request");
        let response = self.0.send(request).await.expect("an answer");
        let status = response.status();
        let bytes = collect(response.into_body()).await;
        let value = serde_json::from_slice(&bytes).unwrap_or_default();
        (status, value)
    }
}

#[expect(clippy::disallowed_methods, reason = "answers to one object are small")]
async fn collect(body: Body) -> bytes::Bytes {
    use http_body_util::BodyExt;
    body.collect().await.expect("a whole body").to_bytes()
}

fn revision(object: &Value) -> &str {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
}

fn differences(path: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let at = format!("{path}.{key}");
                let none = &Value::Null;
                differences(
                    &at,
                    a.get(key).unwrap_or(none),
                    b.get(key).unwrap_or(none),
                    out,
                );
            }
        }
        _ if a == b => {}
        _ => out.push(format!("{path}: {a} became {b}")),
    }
}

/// The collection of a manifest, with the parameters of a writer.
fn place(manifest: &Value, plural: &str) -> String {
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    let root = if version.contains('/') { "apis" } else { "api" };
    match manifest["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{version}/{plural}"),
    }
}

#[tokio::test(start_paused = true)]
async fn said_again_nothing_is_written() {
    let options = Options::new(Environment::simulated(5));
    let pocket = Pocket::open(options).await.expect("a server in memory");
    let server = Server(kube::Client::new(pocket.service(), "default"));
    let manifests: Vec<Value> = serde_saphyr::from_multiple(KINDS).expect("the manifests are YAML");
    let mut restless = Vec::new();
    for manifest in &manifests {
        // The plural is for the test, and not a field of the object.
        let mut manifest = manifest.clone();
        let plural = manifest["plural"].take();
        let plural = plural.as_str().expect("each manifest names its plural");
        manifest
            .as_object_mut()
            .expect("each manifest is an object")
            .remove("plural");
        restless.extend(restlessness(&server, &manifest, plural).await);
    }
    assert!(manifests.len() > 20);
    assert!(restless.is_empty(), "{}", restless.join("\n"));
}

/// What changes in an object when it is applied, updated and patched without a change.
async fn restlessness(server: &Server, manifest: &Value, plural: &str) -> Vec<String> {
    const APPLY: &str = "application/apply-patch+yaml";
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{}/{name}", place(manifest, plural));
    let applied = format!("{path}?fieldManager=me&fieldValidation=Strict");
    let (status, first) = server.send("PATCH", &applied, APPLY, manifest).await;
    if status != StatusCode::CREATED {
        return vec![format!("{plural}/{name}: {status} {}", first["message"])];
    }
    // The server itself may have something to add, such as the used amounts of a quota.
    time_passes(Duration::from_secs(2)).await;
    let (_, first) = server.send("GET", &path, APPLY, &Value::Null).await;
    let mut found = Vec::new();
    let steps = [
        ("applied", "PATCH", applied.clone(), APPLY, manifest.clone()),
        (
            "updated",
            "PUT",
            format!("{path}?fieldManager=you"),
            "application/json",
            first.clone(),
        ),
        (
            "merged",
            "PATCH",
            format!("{path}?fieldManager=you"),
            "application/merge-patch+json",
            json!({"metadata": {"name": name}}),
        ),
        ("applied again", "PATCH", applied, APPLY, manifest.clone()),
    ];
    for (what, method, path, kind, body) in steps {
        time_passes(Duration::from_secs(2)).await;
        let (status, after) = server.send(method, &path, kind, &body).await;
        if status != StatusCode::OK {
            found.push(format!(
                "{plural}/{name} {what}: {status} {}",
                after["message"]
            ));
        } else if revision(&after) != revision(&first) {
            differences(
                &format!("{plural}/{name} {what}"),
                &first,
                &after,
                &mut found,
            );
            break;
        }
    }
    found
}
