//! What outlives the backends: the store, the clusters, and a customer who watches.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Request, Response};
use neap_kit::{
    client::{Body, Transport, transport_fn},
    clock::Clock,
    context::Context,
};
use neap_pocket::store::{Change, Event};
use neap_store::{
    CallObserver, Commit, Document, Error, ListRequest, Precondition, Scope, Store, StoreCall,
};
use neap_trial::external::{ExternalClient, ExternalService};
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt;

use super::clusters::Clusters;
use crate::{
    catalogue::Catalogue,
    cluster_api::ClusterApi,
    documents::{BILLING, CLUSTERS, OPERATIONS, QUEUE, SUBSCRIPTIONS, set, text},
    enrichment::Enrichment,
    fixtures::{self, Provider, cluster, path},
    install::{Hive, StepContext},
    state::ProvisioningState,
};

/// The host under which plans name the store.
pub(super) const STORE: &str = "store";
const API: &str = "2025-07-25";
/// How often the customer asks.
const ASKS: Duration = Duration::from_millis(500);
/// What each operation on the cluster ends with, in the audit.
const ENDS: [&str; 2] = ["Creating ended Succeeded", "Deleting ended Succeeded"];

/// The region of the run that is played. Runs of a test follow one another.
#[derive(Clone, Default)]
pub(super) struct Current(Arc<Mutex<Option<Arc<Region>>>>);

impl Current {
    pub(super) fn region(&self) -> Arc<Region> {
        self.0.lock().clone().unwrap()
    }

    /// A new region for a run, and the system as which plans strike its store.
    pub(super) fn open(&self, clock: Clock) -> ExternalService {
        let region = Arc::new(Region::new(clock));
        *self.0.lock() = Some(region.clone());
        // Every call to the store makes a request to this before it happens, and one after it.
        let transport = transport_fn(|_| async { Ok(Response::new(Body::empty())) });
        ExternalService::new(transport).checked(move |history| region.problems(history))
    }
}

pub(super) struct Region {
    store: Store,
    catalogue: Catalogue,
    clock: Clock,
    pub(super) clusters: Arc<Clusters>,
    lives: AtomicUsize,
    /// What the customer found wrong, and how far the customer came.
    found: Mutex<Vec<String>>,
    is_served: AtomicUsize,
}

impl Region {
    fn new(clock: Clock) -> Self {
        let store = fixtures::store(clock);
        Self {
            catalogue: Catalogue::new(store.clone()),
            store,
            clock,
            clusters: Arc::default(),
            lives: AtomicUsize::default(),
            found: Mutex::default(),
            is_served: AtomicUsize::default(),
        }
    }

    /// A new identity for each life of a backend.
    pub(super) fn owner(&self, backend: &str) -> String {
        format!("{backend}-{}", self.lives.fetch_add(1, Ordering::Relaxed))
    }

    /// What the steps of a backend work with.
    pub(super) fn step_context(&self, context: &Context, external: &ExternalClient) -> StepContext {
        let observer = Struck(external.transport());
        let hive = Hive::new(ClusterApi::new(context.client.clone(), self.clock));
        StepContext {
            store: self.store.clone().observed_by(Arc::new(observer)),
            installer: Some(Arc::new(hive)),
            connector: self.clusters.clone(),
            versions: self.catalogue.clone(),
            location: "local".to_owned(),
            domain: fixtures::region().domain,
            clock: self.clock,
        }
    }

    /// The customer: creates a cluster, waits, deletes it, waits.
    pub(super) async fn create_and_delete(&self) {
        let store = self.store.clone();
        let provider = Provider::with(store, Enrichment::Off, None, self.clock).await;
        self.catalogue.read().await.unwrap();
        let blue = path("blue", API);
        let (status, headers, body) = provider.send("PUT", &blue, Some(cluster("blue"))).await;
        self.expect(status == 201, || format!("PUT: {status} {body}"));
        self.give_key().await;
        self.follow(&provider, &headers).await;
        let (status, _, body) = provider.send("GET", &blue, None).await;
        let state = text(&body, "/properties/provisioningState");
        self.expect(status == 200 && state == "Succeeded", || {
            format!("GET: {status} {body}")
        });
        let (status, headers, body) = provider.send("DELETE", &blue, None).await;
        self.expect(status == 202, || format!("DELETE: {status} {body}"));
        self.follow(&provider, &headers).await;
        let (status, ..) = provider.send("GET", &blue, None).await;
        self.expect(status == 404, || {
            format!("GET after the deletion: {status}")
        });
        self.is_served.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }

    /// Keys take long to make, and nothing depends on this one.
    async fn give_key(&self) {
        for document in self.documents(CLUSTERS).await {
            let mut body = document.body.clone();
            set(
                &mut body,
                "/openShiftCluster/properties/sshKey",
                "a key".into(),
            );
            let unique = crate::documents::unique_keys(&body);
            let commit = Commit::default().with(neap_store::Write::Put {
                key: document.key,
                precondition: Precondition::Etag(document.etag),
                body,
                unique,
                ttl: None,
                queue: neap_store::QueueChange::Keep,
            });
            self.store.commit(commit).await.unwrap();
        }
    }

    /// Asks for the status of an operation until it has ended.
    async fn follow(&self, provider: &Provider, headers: &HeaderMap) {
        let Some(link) = headers.get("azure-asyncoperation") else {
            return;
        };
        let link = link.to_str().unwrap();
        let link = link.trim_start_matches("https://arm.example.com");
        loop {
            let (_, _, status) = provider.send("GET", link, None).await;
            self.agreement().await;
            let state = ProvisioningState::parse(text(&status, "/status"));
            if state.is_some_and(ProvisioningState::is_terminal) {
                let succeeded = state == Some(ProvisioningState::Succeeded);
                self.expect(succeeded, || format!("the operation: {status}"));
                return;
            }
            self.clock.sleep(ASKS).await;
        }
    }

    fn expect(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.found.lock().push(otherwise());
        }
    }

    async fn documents(&self, collection: &'static str) -> Vec<Document> {
        let request = ListRequest {
            collection,
            scope: Scope::Everywhere,
            prefix: "",
            after: None,
            limit: 100,
        };
        self.store.list(&request).await.unwrap()
    }

    /// An operation has ended exactly if its cluster says so. Nothing is written between the reads: a
    /// store in memory never waits.
    async fn agreement(&self) {
        let clusters = self.documents(CLUSTERS).await;
        let operations = self.documents(OPERATIONS).await;
        for operation in &operations {
            let id = text(&operation.body, "/asyncOperation/name");
            let status = text(&operation.body, "/asyncOperation/status");
            let has_ended =
                ProvisioningState::parse(status).is_some_and(ProvisioningState::is_terminal);
            let works = |it: &&Document| text(&it.body, "/asyncOperationId") == id;
            let runs = clusters.iter().find(works);
            self.expect(has_ended == runs.is_none(), || {
                format!("the operation {id} is {status}, and its cluster is {runs:?}")
            });
            if let Some(cluster) = runs {
                let state = text(
                    &cluster.body,
                    "/openShiftCluster/properties/provisioningState",
                );
                self.expect(state == status, || {
                    format!("the operation {id} is {status}, and its cluster is {state}")
                });
            }
            let stored = operation.body.to_string();
            self.expect(!stored.contains("hush"), || {
                "an operation has a secret".to_owned()
            });
        }
    }

    /// What is wrong at the end of a run. `history` has the writes to the cluster of Hive.
    fn problems(&self, history: &[Arc<Event>]) -> Vec<String> {
        // A store in memory never waits, so this needs no runtime of its own.
        futures::executor::block_on(async {
            let mut problems = std::mem::take(&mut *self.found.lock());
            if self.is_served.load(Ordering::Relaxed) != 1 {
                problems.push("the customer still waits".to_owned());
            }
            problems.extend(self.ends().await);
            problems.extend(self.left().await);
            problems.extend(self.clusters.problems());
            problems.extend(left_in_hive(history));
            problems
        })
    }

    /// Each operation ended exactly once, in the audit and in the outbox.
    async fn ends(&self) -> Vec<String> {
        let audit = self.store.audit(1000).await.unwrap();
        let ends = audit.iter().filter(|row| row.action.contains(" ended "));
        let mut ends: Vec<_> = ends.map(|row| row.action.clone()).collect();
        ends.sort();
        let mut problems = Vec::new();
        if ends != ENDS {
            problems.push(format!("the operations ended as {ends:?}"));
        }
        let outbox = self.store.outbox(1000).await.unwrap();
        let told = outbox
            .iter()
            .filter(|(_, topic, _)| topic == "cluster-operation-ended");
        let mut told: Vec<_> = told
            .map(|(.., body)| text(body, "/operation").to_owned())
            .collect();
        let count = told.len();
        told.sort();
        told.dedup();
        if (count, told.len()) != (2, 2) {
            problems.push(format!("{count} ends were announced, of {told:?}"));
        }
        problems
    }

    async fn left(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for collection in [CLUSTERS, SUBSCRIPTIONS] {
            let queued = self.store.queue_length(collection, QUEUE).await.unwrap();
            if queued != 0 {
                problems.push(format!("{queued} of {collection} wait for work"));
            }
        }
        if !self.documents(CLUSTERS).await.is_empty() {
            problems.push("the document of the cluster is left".to_owned());
        }
        let billing = self.documents(BILLING).await;
        let times: Vec<_> = billing.iter().map(|it| &it.body["billing"]).collect();
        let is_closed =
            |it: &&Value| !it["creationTime"].is_null() && !it["deletionTime"].is_null();
        if times.len() != 1 || !times.iter().all(is_closed) {
            problems.push(format!("the bill is {times:?}"));
        }
        problems
    }
}

/// What is left of the cluster in the cluster of Hive, and what was made there more than once.
fn left_in_hive(history: &[Arc<Event>]) -> Vec<String> {
    let mut last: BTreeMap<(&str, &str), Change> = BTreeMap::new();
    let mut deployments = 0;
    for event in history {
        let of_cluster = event.path.starts_with("aro-");
        if of_cluster && !event.resource.starts_with("events") {
            last.insert((&event.resource, &event.path), event.change);
        }
        let is_deployment = event.resource.ends_with("clusterdeployments");
        deployments += usize::from(is_deployment && event.change == Change::Added);
    }
    let left = last
        .iter()
        .filter(|(_, change)| **change != Change::Deleted);
    let mut problems: Vec<_> = left
        .map(|((resource, path), _)| format!("{resource} {path} is left"))
        .collect();
    if deployments != 1 {
        problems.push(format!("{deployments} ClusterDeployments were made"));
    }
    problems
}

/// Makes a request of every write to the store, so that faults strike it.
struct Struck(Transport);

impl Struck {
    async fn pass(&self, call: StoreCall, phase: &str) -> Result<(), String> {
        if !call.writes {
            return Ok(());
        }
        let request = Request::builder()
            .method("POST")
            .uri(format!("http://{STORE}/{}/{phase}", call.name))
            .body(Body::empty())
            .unwrap();
        match self.0.clone().oneshot(request).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(response.status().to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl CallObserver for Struck {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let passed = self.pass(call, "before").await;
            passed.map_err(|why| Error::Unavailable(why.into()))
        }
        .boxed()
    }

    fn after(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let passed = self.pass(call, "after").await;
            passed.map_err(|why| Error::OutcomeUnknown(why.into()))
        }
        .boxed()
    }
}
