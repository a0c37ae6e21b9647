mod cuts;
mod leases;
mod subscriptions;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use neap_kit::{clock::Clock, telemetry::Telemetry};
use neap_store::{Scope, Store};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Backend, BackendOptions};
use crate::{
    cloud_error::CloudError,
    cluster_api::NetworkConnector,
    documents::{CLUSTERS, QUEUE, TIMELINES, cluster_key, subscription_document, text},
    fixtures::{Provider, SUBSCRIPTION, cluster, path, region},
    install::{ClusterGraph, InstallError, InstallRequest, Installation, Installer, StepContext},
    resource_id::ClusterId,
};

const API: &str = "2025-07-25";

/// An installer that says what it is told.
#[derive(Debug)]
struct ScriptedInstaller {
    says: Installation,
    calls: Mutex<Vec<&'static str>>,
    namespaces: Mutex<BTreeSet<String>>,
    /// Whether a namespace is created and its creation does not return.
    hangs: AtomicBool,
}

impl ScriptedInstaller {
    fn new(says: Installation) -> Arc<Self> {
        Arc::new(Self {
            says,
            calls: Mutex::default(),
            namespaces: Mutex::default(),
            hangs: AtomicBool::default(),
        })
    }

    fn hang_after_namespace(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// The namespaces that exist.
    fn namespaces(&self) -> Vec<String> {
        self.namespaces.lock().iter().cloned().collect()
    }

    fn called(&self, name: &'static str) -> usize {
        self.calls.lock().iter().filter(|it| **it == name).count()
    }
}

type Asked<'a, T> = BoxFuture<'a, Result<T, InstallError>>;

impl Installer for ScriptedInstaller {
    fn namespace(&self, id: &str) -> String {
        format!("aro-{id}")
    }

    fn create_namespace<'a>(&'a self, namespace: &'a str) -> Asked<'a, ()> {
        self.calls.lock().push("namespace");
        self.namespaces.lock().insert(namespace.to_owned());
        async move {
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
        .boxed()
    }

    fn install<'a>(&'a self, request: InstallRequest<'a>) -> Asked<'a, ()> {
        self.calls.lock().push("install");
        let secret = text(
            request.document,
            "/openShiftCluster/properties/servicePrincipalProfile/clientSecret",
        );
        assert_eq!(secret, "very-hush", "the installer gets the plain text");
        async { Ok(()) }.boxed()
    }

    fn installation<'a>(&'a self, _: &'a str) -> Asked<'a, Installation> {
        let says = self.says.clone();
        async { Ok(says) }.boxed()
    }

    fn graph<'a>(&'a self, _: &'a str) -> Asked<'a, ClusterGraph> {
        async { Err(InstallError::Incomplete("graph")) }.boxed()
    }

    fn reset_correlation<'a>(&'a self, _: &'a str) -> Asked<'a, ()> {
        async { Ok(()) }.boxed()
    }

    fn delete<'a>(&'a self, namespace: &'a str) -> Asked<'a, bool> {
        self.calls.lock().push("delete");
        self.namespaces.lock().remove(namespace);
        async { Ok(true) }.boxed()
    }
}

struct Bench {
    provider: Provider,
    installer: Arc<ScriptedInstaller>,
}

impl Bench {
    async fn new(says: Installation) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        Self {
            provider: Provider::new(clock).await,
            installer: ScriptedInstaller::new(says),
        }
    }

    fn backend(&self, owner: &str) -> Backend {
        self.backend_on(self.provider.store.clone(), owner)
    }

    /// A backend that reaches the store through this handle.
    fn backend_on(&self, store: Store, owner: &str) -> Backend {
        let context = StepContext {
            store,
            installer: Some(self.installer.clone()),
            connector: Arc::new(NetworkConnector),
            versions: self.provider.catalogue.clone(),
            location: "local".to_owned(),
            domain: region().domain,
            clock: self.provider.clock,
        };
        Backend::new(context, BackendOptions::new(owner), Telemetry::default())
    }

    /// Creates a cluster. Returns the path of the status of the operation.
    async fn create(&self, name: &str) -> String {
        let put = path(name, API);
        let (status, headers, body) = self.provider.send("PUT", &put, Some(cluster(name))).await;
        assert_eq!(status, 201, "{body}");
        operation(&headers)
    }

    async fn get(&self, path: &str) -> Value {
        self.provider.send("GET", path, None).await.2
    }

    /// Waits until the status of an operation is one of these.
    async fn wait_for(&self, operation: &str, wanted: &[&str]) -> Value {
        loop {
            let status = self.get(operation).await;
            if wanted.contains(&text(&status, "/status")) {
                return status;
            }
            self.provider.clock.sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until an operation is at a step.
    async fn wait_for_step(&self, operation: &str, step: &str) {
        while text(&self.get(operation).await, "/properties/step") != step {
            self.provider.clock.sleep(Duration::from_millis(200)).await;
        }
    }

    async fn document(&self, name: &str) -> Option<Value> {
        let key = cluster_key(&id(name));
        let found = self.provider.store.get(Scope::Everywhere, &key).await;
        found.unwrap().map(|it| it.body)
    }

    async fn timeline(&self, operation: &str) -> Value {
        let id = operation
            .rsplit('/')
            .next()
            .unwrap()
            .split('?')
            .next()
            .unwrap();
        let key = subscription_document(TIMELINES, SUBSCRIPTION, id);
        let found = self.provider.store.get(Scope::Everywhere, &key).await;
        found.unwrap().unwrap().body["timeline"].clone()
    }
}

fn id(name: &str) -> ClusterId {
    ClusterId::parse(path(name, "").split('?').next().unwrap()).unwrap()
}

fn operation(headers: &http::HeaderMap) -> String {
    let link = headers["azure-asyncoperation"].to_str().unwrap();
    link.trim_start_matches("https://arm.example.com")
        .to_owned()
}

/// Runs a backend until `work` is done, and then as long as it hands over.
async fn with<T>(backend: &Backend, work: impl Future<Output = T>) -> T {
    let stop = CancellationToken::new();
    let running = backend.component("backend").run(stop.clone());
    let working = async {
        let done = work.await;
        stop.cancel();
        done
    };
    tokio::join!(running, working).1
}

fn failed() -> Installation {
    Installation::Failed(CloudError::bad_request(
        "DeploymentFailed",
        "",
        "no capacity",
    ))
}

fn running() -> Installation {
    Installation::Running("machines start".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_installer_is_told_as_it_said_it() {
    let bench = Bench::new(failed()).await;
    let operation = bench.create("blue").await;
    let status = with(
        &bench.backend("one"),
        bench.wait_for(&operation, &["Failed"]),
    )
    .await;
    assert_eq!(status["error"]["code"], "DeploymentFailed");
    assert_eq!(status["error"]["message"], "no capacity");
    assert!(!status["endTime"].is_null());
    let found = bench.timeline(&operation).await;
    let found = text(&found, "/message");
    assert!(found.starts_with("the installer: "), "{found}");
    assert!(found.contains("no capacity"), "{found}");
    let document = bench.document("blue").await.unwrap();
    let properties = &document["openShiftCluster"]["properties"];
    assert_eq!(properties["provisioningState"], "Failed");
    assert_eq!(properties["failedProvisioningState"], "Creating");
    assert_eq!(
        bench
            .provider
            .store
            .queue_length(CLUSTERS, QUEUE)
            .await
            .unwrap(),
        0
    );
    let result = operation.replace("operationsstatus", "operationresults");
    let snapshot = bench.get(&result).await;
    assert_eq!(snapshot["properties"]["provisioningState"], "Failed");
    assert!(!snapshot.to_string().contains("hush"));
    // What failed to be created can be deleted, and only that.
    let (status, ..) = bench
        .provider
        .send("PUT", &path("blue", API), Some(cluster("blue")))
        .await;
    assert_eq!(status, 400);
    let (status, headers, _) = bench
        .provider
        .send("DELETE", &path("blue", API), None)
        .await;
    assert_eq!(status, 202);
    let operation = self::operation(&headers);
    with(
        &bench.backend("one"),
        bench.wait_for(&operation, &["Succeeded"]),
    )
    .await;
    assert!(bench.document("blue").await.is_none());
    let result = operation.replace("operationsstatus", "operationresults");
    assert_eq!(bench.provider.send("GET", &result, None).await.0, 204);
    assert!(bench.installer.called("delete") > 0);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_waits_says_for_what_and_ends_when_it_is_cancelled() {
    let bench = Bench::new(running()).await;
    let operation = bench.create("blue").await;
    let work = async {
        let status = loop {
            let status = bench.get(&operation).await;
            if status["properties"]["waitsFor"] == "machines start" {
                break status;
            }
            bench.provider.clock.sleep(Duration::from_millis(200)).await;
        };
        assert_eq!(
            status["properties"]["step"],
            "hiveClusterInstallationComplete"
        );
        let id = text(&status, "/name");
        let cancel = format!("/admin/operations/{SUBSCRIPTION}/{id}/cancel?reason=enough");
        let (status, ..) = bench.provider.send("POST", &cancel, None).await;
        assert_eq!(status, 202);
        let asked = bench.provider.clock.uptime();
        let status = bench.wait_for(&operation, &["Canceled"]).await;
        let took = bench.provider.clock.uptime().saturating_sub(asked);
        assert!(took < Duration::from_secs(10), "{took:?}");
        status
    };
    let status = with(&bench.backend("one"), work).await;
    assert_eq!(status["error"]["code"], "OperationCanceled");
    assert_eq!(status["error"]["message"], "enough");
}

#[tokio::test(start_paused = true)]
async fn another_backend_continues_at_the_step_of_one_that_vanished() {
    let bench = Bench::new(running()).await;
    let operation = bench.create("blue").await;
    let waits = async {
        while bench.installer.called("install") == 0 {
            bench.provider.clock.sleep(Duration::from_millis(50)).await;
        }
        // Into the step that waits.
        bench.provider.clock.sleep(Duration::from_secs(3)).await;
    };
    let first = bench.backend("one");
    // Dropped without a word, as by `kill -9`.
    let stop = CancellationToken::new();
    tokio::select! {
        () = first.component("backend").run(stop.clone()) => {}
        () = waits => {}
    }
    let lost_at = bench.provider.clock.uptime();
    let key = cluster_key(&id("blue"));
    let taken = async {
        loop {
            let work = bench.provider.store.work(&key).await.unwrap();
            if work.owner.as_deref() == Some("two") {
                return bench.provider.clock.uptime().saturating_sub(lost_at);
            }
            bench.provider.clock.sleep(Duration::from_millis(100)).await;
        }
    };
    let took = with(&bench.backend("two"), taken).await;
    // The lease and no poll after it: the second backend knows when the lease ends.
    assert!(took <= Duration::from_millis(12_500), "{took:?}");
    assert_eq!(
        bench.installer.called("install"),
        1,
        "the installer is started once"
    );
    let timeline = bench.timeline(&operation).await;
    let steps = timeline["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    assert_eq!(last["name"], "hiveClusterInstallationComplete");
    // A backend that stops hands over at once.
    let work = bench.provider.store.work(&key).await.unwrap();
    assert_eq!(work.owner, None, "{work:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_its_workers_is_parked_with_the_reason() {
    let bench = Bench::new(running()).await;
    let operation = bench.create("blue").await;
    for _ in 0..5 {
        let claimed = bench
            .provider
            .store
            .claim(CLUSTERS, QUEUE, "crashes", 0)
            .await;
        assert!(claimed.unwrap().is_some());
    }
    let status = with(
        &bench.backend("one"),
        bench.wait_for(&operation, &["Failed"]),
    )
    .await;
    let message = text(&status, "/error/message");
    assert!(
        message.contains("claimed 5 times without progress"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_outbox_is_emptied() {
    let bench = Bench::new(failed()).await;
    let operation = bench.create("blue").await;
    let backend = bench.backend("one");
    with(&backend, bench.wait_for(&operation, &["Failed"])).await;
    let store = &bench.provider.store;
    let topics: Vec<_> = store.outbox(9).await.unwrap();
    let topics: Vec<_> = topics.iter().map(|(_, topic, _)| &**topic).collect();
    assert_eq!(topics, ["cluster-operation", "cluster-operation-ended"]);
    let stop = CancellationToken::new();
    let emptied = async {
        while !store.outbox(9).await.unwrap().is_empty() {
            bench.provider.clock.sleep(Duration::from_millis(200)).await;
        }
        stop.cancel();
    };
    let housekeeping = backend.housekeeping("housekeeping").run(stop.clone());
    tokio::join!(housekeeping, emptied);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_subscription_deletes_its_clusters() {
    let bench = Bench::new(failed()).await;
    let operation = bench.create("blue").await;
    let gone = async {
        bench.wait_for(&operation, &["Failed"]).await;
        let path = format!("/subscriptions/{SUBSCRIPTION}");
        let body = json!({"state": "Deleted"});
        let (status, ..) = bench.provider.send("PUT", &path, Some(body)).await;
        assert_eq!(status, 200);
        while bench.document("blue").await.is_some() {
            bench.provider.clock.sleep(Duration::from_millis(200)).await;
        }
    };
    with(&bench.backend("one"), gone).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_repeats_no_step_that_is_done() {
    let bench = Bench::new(failed()).await;
    let operation = bench.create("blue").await;
    with(
        &bench.backend("one"),
        bench.wait_for(&operation, &["Failed"]),
    )
    .await;
    let first = bench.get(&operation).await;
    let retry = format!(
        "/admin/operations/{SUBSCRIPTION}/{}/retry",
        text(&first, "/name")
    );
    let (status, _, body) = bench.provider.send("POST", &retry, None).await;
    assert_eq!(status, 202, "{body}");
    let again = operation.replace(text(&first, "/name"), text(&body, "/id"));
    with(&bench.backend("one"), bench.wait_for(&again, &["Failed"])).await;
    assert_eq!(bench.installer.called("install"), 1);
    assert_eq!(bench.installer.called("namespace"), 1);
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_when_its_subscription_is_suspended_and_then_only_a_deletion_is_accepted() {
    let bench = Bench::new(running()).await;
    let operation = bench.create("blue").await;
    let suspended = async {
        bench
            .wait_for_step(&operation, "hiveClusterInstallationComplete")
            .await;
        let path = format!("/subscriptions/{SUBSCRIPTION}");
        let body = json!({"state": "Suspended"});
        let (status, ..) = bench.provider.send("PUT", &path, Some(body)).await;
        assert_eq!(status, 200);
        bench.provider.clock.sleep(Duration::from_secs(20)).await;
        let status = bench.get(&operation).await;
        assert_eq!(
            status["status"], "Creating",
            "it still waits for the installer"
        );
        let cancel = format!(
            "/admin/operations/{SUBSCRIPTION}/{}/cancel",
            text(&status, "/name")
        );
        assert_eq!(bench.provider.send("POST", &cancel, None).await.0, 202);
        bench.wait_for(&operation, &["Canceled"]).await
    };
    with(&bench.backend("one"), suspended).await;
    let put = path("blue", API);
    let (status, _, body) = bench
        .provider
        .send("PUT", &put, Some(cluster("blue")))
        .await;
    assert_eq!(
        (status, text(&body, "/error/code")),
        (400, "InvalidSubscriptionState")
    );
    let credentials = put.replace('?', "/listCredentials?");
    let (status, ..) = bench.provider.send("POST", &credentials, None).await;
    assert_eq!(status, 400);
    let (status, headers, _) = bench.provider.send("DELETE", &put, None).await;
    assert_eq!(status, 202);
    let deletion = self::operation(&headers);
    with(
        &bench.backend("one"),
        bench.wait_for(&deletion, &["Succeeded"]),
    )
    .await;
    assert!(bench.document("blue").await.is_none());
}
