//! An API server in the test's own process, the controllers under test, and a simulated kubelet:
//! hours pass in milliseconds.

mod calls;
mod kubelet;

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object,
    clock::Clock,
    context::Context,
    lease::Leadership,
    manager::Component,
    watch::{Watches, WatchesStopped},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use self::calls::CallLog;
pub(crate) use self::{
    calls::ApiCall,
    kubelet::{Kubelet, PodBehavior},
};

/// The time at which every test starts.
pub(crate) const START: &str = "2026-01-01T00:00:00Z";

/// The fields of an object that is written as JSON.
pub(crate) fn fields(object: Value) -> serde_json::Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

pub(crate) struct TestCluster {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) context: Context,
    calls: CallLog,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl TestCluster {
    /// Starts the API server and the components.
    pub(crate) async fn start(
        components: impl FnOnce(&Context) -> Result<Vec<Component>, WatchesStopped>,
    ) -> Self {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at(START.parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let calls = CallLog::default();
        let recorder = calls.clone();
        let recording = MapRequest::new(pocket.service(), move |request| recorder.record(request));
        let context = Context {
            client: Client::new(recording, "default"),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let mut cluster = Self {
            client,
            clock,
            context: context.clone(),
            calls,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            _pocket: pocket,
        };
        for component in components(&context).unwrap() {
            cluster.run(component.run(cluster.stop.clone()));
        }
        let stop = cluster.stop.clone();
        cluster.run(Box::pin(watching.run(stop)));
        cluster
    }

    fn run(&mut self, task: BoxFuture<'static, ()>) {
        self.tasks.spawn(task);
    }

    /// Starts one more component.
    pub(crate) fn with_component(
        mut self,
        component: impl FnOnce(&Context) -> Result<Component, WatchesStopped>,
    ) -> Self {
        let component = component(&self.context).unwrap();
        self.run(component.run(self.stop.clone()));
        self
    }

    /// Adds a simulated node.
    pub(crate) fn with_kubelet(mut self, kubelet: Kubelet) -> Self {
        let (client, clock) = (self.client.clone(), self.clock);
        self.run(Box::pin(async move { kubelet.run(client, clock).await }));
        self
    }

    /// Lets this much time pass, with everything that happens meanwhile.
    pub(crate) async fn advance(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// How many writes the controllers have attempted, whatever the result.
    pub(crate) fn writes(&self) -> u64 {
        let metrics = self.context.watches.process().metrics();
        let counted = metrics
            .lines()
            .filter(|line| line.starts_with("neaptide_writes_total{"));
        let numbers = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }

    /// The requests of the components since the last call, each with its count.
    pub(crate) fn calls(&self) -> BTreeMap<ApiCall, usize> {
        self.calls.take()
    }

    /// Fails if a task has ended: none may end before the test does.
    pub(crate) fn assert_all_run(&mut self) {
        let ended = self.tasks.try_join_next();
        assert!(
            ended.is_none(),
            "a component or the node has ended: {ended:?}"
        );
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = self.api().create(&PostParams::default(), &object).await;
        made.unwrap()
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get(name).await.unwrap()
    }

    /// All objects of a kind in the namespace of the test.
    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (api, parameters, patch) = (self.api(), PatchParams::default(), Patch::Merge(patch));
        api.patch(name, &parameters, &patch).await.unwrap()
    }

    pub(crate) async fn patch_status<K>(&self, name: &str, status: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(serde_json::json!({"status": status}));
        let api = self.api();
        let patched = api
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.unwrap()
    }

    /// Creates a cluster-scoped object.
    pub(crate) async fn create_cluster_scoped<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = ClusterResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = Api::all(self.client.clone())
            .create(&PostParams::default(), &object)
            .await;
        made.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.unwrap();
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
