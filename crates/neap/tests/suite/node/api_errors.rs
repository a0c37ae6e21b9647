//! Deletion of pods while the API server fails requests of the node: the pods are removed nevertheless.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use kube::{
    Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use neap_kit::clock::Clock;
use neap_pocket::wire::Service;
use neap_world::node::{
    launch::Launch,
    process::{ContainerLog, ProcessStarter},
};
use serde_json::json;
use tower::ServiceExt;

use super::test_node::{TestNode, WAIT_TIMEOUT};

/// Returns the status code that replaces the response to a request, if any.
pub(crate) trait FaultRule:
    Fn(&Request<Body>) -> Option<StatusCode> + Send + Sync + 'static
{
}

impl<T: Fn(&Request<Body>) -> Option<StatusCode> + Send + Sync + 'static> FaultRule for T {}

/// A client whose requests fail as `rule` decides.
pub(crate) fn client(server: Service, rule: impl FaultRule) -> Client {
    let rule = Arc::new(rule);
    let answered = tower::service_fn(move |request: Request<Body>| {
        let (server, rule) = (server.clone(), rule.clone());
        async move {
            let Some(code) = rule(&request) else {
                let answer = server.oneshot(request).await?;
                return Ok::<_, Infallible>(answer.map(Either::Left));
            };
            let reason = if code == StatusCode::CONFLICT {
                "Conflict"
            } else {
                "InjectedFault"
            };
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
                "message": "injected fault", "reason": reason, "code": code.as_u16(),
            });
            let body = Full::from(status.to_string());
            let mut answer = Response::new(Either::Right(body));
            *answer.status_mut() = code;
            Ok(answer)
        }
    });
    Client::new(answered, "default")
}

const SCRIPT: &str = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";

/// Runs a pod and deletes it while `rule` fails requests of the node; the pod must be removed.
async fn assert_pod_is_removed(rule: impl FaultRule) {
    let enabled = Arc::new(AtomicBool::new(false));
    let is_enabled = enabled.clone();
    let rule = move |request: &Request<Body>| {
        let is_on = is_enabled.load(Ordering::Relaxed);
        is_on.then(|| rule(request)).flatten()
    };
    let node = TestNode::with_faults(rule).await;
    let pod = node.run("server", SCRIPT, json!({})).await;
    node.prints(&pod, "ready").await;
    node.phase("server", "Running").await;
    enabled.store(true, Ordering::Relaxed);
    let deletion = DeleteParams::default();
    node.pods.delete("server", &deletion).await.unwrap();
    node.gone(&pod).await;
}

/// Whether the request is the final deletion of the pod by the node.
fn is_removal(request: &Request<Body>) -> bool {
    request.method() == Method::DELETE && request.uri().path().ends_with("/pods/server")
}

fn is_status(request: &Request<Body>) -> bool {
    request.method() == Method::PUT && request.uri().path().ends_with("/pods/server/status")
}

#[tokio::test]
async fn a_refused_status_does_not_keep_a_pod() {
    assert_pod_is_removed(|request| is_status(request).then_some(StatusCode::UNPROCESSABLE_ENTITY))
        .await;
}

#[tokio::test]
async fn a_removal_is_retried_after_a_conflict() {
    let tries = AtomicU32::new(0);
    assert_pod_is_removed(move |request| {
        let met = is_removal(request) && tries.fetch_add(1, Ordering::Relaxed) < 2;
        met.then_some(StatusCode::CONFLICT)
    })
    .await;
}

#[tokio::test]
async fn a_removal_is_retried_until_it_succeeds() {
    let tries = AtomicU32::new(0);
    assert_pod_is_removed(move |request| {
        let met = is_removal(request) && tries.fetch_add(1, Ordering::Relaxed) < 6;
        met.then_some(StatusCode::INTERNAL_SERVER_ERROR)
    })
    .await;
}

#[tokio::test]
async fn refused_events_do_not_keep_a_pod() {
    assert_pod_is_removed(|request| {
        let is_event = request.uri().path().ends_with("/events");
        is_event.then_some(StatusCode::TOO_MANY_REQUESTS)
    })
    .await;
}

#[tokio::test]
async fn a_pod_with_a_finalizer_is_removed_once() {
    let removals = Arc::new(AtomicU32::new(0));
    let seen = removals.clone();
    let node = TestNode::with_faults(move |request| {
        if is_removal(request) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        None
    })
    .await;
    let kept = json!({"metadata": {"finalizers": ["example.com/kept"]}});
    let pod = node.run("server", SCRIPT, kept).await;
    node.prints(&pod, "ready").await;
    let deletion = DeleteParams::default();
    node.pods.delete("server", &deletion).await.unwrap();
    node.phase("server", "Succeeded").await;
    let forgotten = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata.deletion_grace_period_seconds == Some(0)
    };
    node.when("server", forgotten).await;
    // The node reconciles each change, and has nothing left to do.
    for round in 0..3 {
        let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        let patch = Patch::Merge(patch);
        let name = pod.name_any();
        node.pods
            .patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let parameters = PatchParams::default();
    node.pods.patch("server", &parameters, &free).await.unwrap();
    node.gone(&pod).await;
    assert_eq!(removals.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_process_ends_when_its_handle_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let starter = ProcessStarter {
        launcher: env!("CARGO_BIN_EXE_neap").into(),
        clock: Clock::system(),
    };
    for supervised in [false, true] {
        let launch = Launch {
            command: ["sleep", "1000"].map(str::to_owned).into(),
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            folder: None,
            parent: std::process::id(),
            namespaces: None,
            joins: None,
            terminal: false,
            reports: false,
        };
        let log = ContainerLog::of(folder.path());
        let started = starter.start(launch, folder.path(), &log).await;
        let started = started.unwrap().unwrap();
        let running = started.running.clone();
        if supervised {
            drop(started.run_to_end(starter.clock));
        } else {
            drop(started);
        }
        let ended = tokio::time::timeout(WAIT_TIMEOUT, running.wait_ended()).await;
        assert!(ended.is_ok(), "supervised: {supervised}");
    }
}
