//! Pods that are to go, on a server with troubles of its own: they go all the same.

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
    process::{Log, Starter},
};
use serde_json::json;
use tower::ServiceExt;

use crate::machine::{LIMIT, Machine};

/// The status code of an answer that stands for what was asked for.
pub(crate) trait Trouble:
    Fn(&Request<Body>) -> Option<StatusCode> + Send + Sync + 'static
{
}

impl<T: Fn(&Request<Body>) -> Option<StatusCode> + Send + Sync + 'static> Trouble for T {}

/// A client of a server with troubles.
pub(crate) fn client(server: Service, trouble: impl Trouble) -> Client {
    let trouble = Arc::new(trouble);
    let answered = tower::service_fn(move |request: Request<Body>| {
        let (server, trouble) = (server.clone(), trouble.clone());
        async move {
            let Some(code) = trouble(&request) else {
                let answer = server.oneshot(request).await?;
                return Ok::<_, Infallible>(answer.map(Either::Left));
            };
            let reason = if code == StatusCode::CONFLICT {
                "Conflict"
            } else {
                "Trouble"
            };
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
                "message": "trouble", "reason": reason, "code": code.as_u16(),
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

/// Runs a pod and deletes it. It must go, whatever the server does to the node's requests from
/// then on.
async fn goes(trouble: impl Trouble) {
    let begins = Arc::new(AtomicBool::new(false));
    let begun = begins.clone();
    let trouble = move |request: &Request<Body>| {
        let is_on = begun.load(Ordering::Relaxed);
        is_on.then(|| trouble(request)).flatten()
    };
    let machine = Machine::troubled(trouble).await;
    let pod = machine.run("server", SCRIPT, json!({})).await;
    machine.prints(&pod, "ready").await;
    machine.phase("server", "Running").await;
    begins.store(true, Ordering::Relaxed);
    let deletion = DeleteParams::default();
    machine.pods.delete("server", &deletion).await.unwrap();
    machine.gone(&pod).await;
}

/// Whether it is the node's last word: the deletion of a pod.
fn is_removal(request: &Request<Body>) -> bool {
    request.method() == Method::DELETE && request.uri().path().ends_with("/pods/server")
}

fn is_status(request: &Request<Body>) -> bool {
    request.method() == Method::PUT && request.uri().path().ends_with("/pods/server/status")
}

#[tokio::test]
async fn no_pod_stays_because_its_status_is_refused() {
    goes(|request| is_status(request).then_some(StatusCode::UNPROCESSABLE_ENTITY)).await;
}

#[tokio::test]
async fn a_removal_that_met_a_conflict_is_tried_again() {
    let tries = AtomicU32::new(0);
    goes(move |request| {
        let met = is_removal(request) && tries.fetch_add(1, Ordering::Relaxed) < 2;
        met.then_some(StatusCode::CONFLICT)
    })
    .await;
}

#[tokio::test]
async fn a_removal_is_tried_again_until_the_server_can() {
    let tries = AtomicU32::new(0);
    goes(move |request| {
        let met = is_removal(request) && tries.fetch_add(1, Ordering::Relaxed) < 6;
        met.then_some(StatusCode::INTERNAL_SERVER_ERROR)
    })
    .await;
}

#[tokio::test]
async fn no_pod_stays_because_nobody_can_be_told_of_it() {
    goes(|request| {
        let is_event = request.uri().path().ends_with("/events");
        is_event.then_some(StatusCode::TOO_MANY_REQUESTS)
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_others_keep_is_left_to_them() {
    let removals = Arc::new(AtomicU32::new(0));
    let seen = removals.clone();
    let machine = Machine::troubled(move |request| {
        if is_removal(request) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        None
    })
    .await;
    let kept = json!({"metadata": {"finalizers": ["example.com/kept"]}});
    let pod = machine.run("server", SCRIPT, kept).await;
    machine.prints(&pod, "ready").await;
    let deletion = DeleteParams::default();
    machine.pods.delete("server", &deletion).await.unwrap();
    machine.phase("server", "Succeeded").await;
    let forgotten = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata.deletion_grace_period_seconds == Some(0)
    };
    machine.when("server", forgotten).await;
    // Each change is looked at, and there is nothing left to do.
    for round in 0..3 {
        let patch = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        let patch = Patch::Merge(patch);
        let name = pod.name_any();
        machine
            .pods
            .patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let parameters = PatchParams::default();
    machine
        .pods
        .patch("server", &parameters, &free)
        .await
        .unwrap();
    machine.gone(&pod).await;
    assert_eq!(removals.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_process_that_nobody_goes_with_ends() {
    let folder = tempfile::tempdir().unwrap();
    let starter = Starter {
        launcher: env!("CARGO_BIN_EXE_neap").into(),
        clock: Clock::system(),
    };
    for with_company in [false, true] {
        let launch = Launch {
            command: ["sleep", "1000"].map(str::to_owned).into(),
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            folder: None,
            parent: std::process::id(),
            rooms: None,
            joins: None,
            terminal: false,
            reports: false,
        };
        let log = Log::of(folder.path());
        let started = starter.start(launch, folder.path(), &log).await;
        let started = started.unwrap().unwrap();
        let running = started.running.clone();
        if with_company {
            drop(started.live(starter.clock));
        } else {
            drop(started);
        }
        let over = tokio::time::timeout(LIMIT, running.over()).await;
        assert!(over.is_ok(), "with company: {with_company}");
    }
}
