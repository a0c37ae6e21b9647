//! The cluster of a test.

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::{
    ClusterResourceScope, NamespaceResourceScope,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object,
    clock::Clock,
    context::Context,
    definitions::is_established,
    lease::Leadership,
    manager::Component,
    watch::{Watches, WatchesStopped},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use crate::{
    calls::{ApiCall, CallLog},
    kubelet::Kubelet,
};

/// The time at which every test starts.
pub const START: &str = "2026-01-01T00:00:00Z";

/// The fields of an object that is written as JSON.
pub fn fields(object: Value) -> serde_json::Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

/// How long [`TestCluster::eventually`] waits.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_mins(10);
/// The time between two looks of [`TestCluster::eventually`].
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// An API server with components, on the clock of the test.
pub struct TestCluster {
    /// The client of the test, whose requests are not recorded. Its namespace is `default`.
    pub client: Client,
    /// The clock of the components.
    pub clock: Clock,
    /// What the components were given.
    pub context: Context,
    calls: CallLog,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl TestCluster {
    /// Starts the API server and the components.
    pub async fn start(
        components: impl FnOnce(&Context) -> Result<Vec<Component>, WatchesStopped>,
    ) -> Self {
        Self::start_with([], components).await
    }

    /// The same with definitions of custom resources, which are served before a component starts.
    pub async fn start_with(
        definitions: impl IntoIterator<Item = CustomResourceDefinition>,
        components: impl FnOnce(&Context) -> Result<Vec<Component>, WatchesStopped>,
    ) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
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
        for definition in definitions {
            cluster.install(&definition).await;
        }
        for component in components(&context).unwrap() {
            cluster.run(component.run(cluster.stop.clone()));
        }
        let stop = cluster.stop.clone();
        cluster.run(Box::pin(watching.run(stop)));
        cluster
    }

    /// Installs a definition and waits until its kind is served.
    pub async fn install(&self, definition: &CustomResourceDefinition) {
        let all: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = definition.name_any();
        all.create(&PostParams::default(), definition)
            .await
            .unwrap();
        self.eventually("the definition is served", async || {
            is_established(&all.get(&name).await.unwrap())
        })
        .await;
    }

    /// Lets time pass until `holds`, and fails with `what` if it does not within ten minutes.
    pub async fn eventually(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begun = self.clock.uptime();
        while !holds().await {
            let waited = self.clock.uptime().saturating_sub(begun);
            assert!(waited < EVENTUALLY_TIMEOUT, "not within {waited:?}: {what}");
            self.clock.sleep(LOOK_INTERVAL).await;
        }
    }

    fn run(&mut self, task: BoxFuture<'static, ()>) {
        self.tasks.spawn(task);
    }

    /// Starts one more component.
    pub fn with_component(
        mut self,
        component: impl FnOnce(&Context) -> Result<Component, WatchesStopped>,
    ) -> Self {
        let component = component(&self.context).unwrap();
        self.run(component.run(self.stop.clone()));
        self
    }

    /// Adds a simulated node.
    pub fn with_kubelet(mut self, kubelet: Kubelet) -> Self {
        let (client, clock) = (self.client.clone(), self.clock);
        self.run(Box::pin(async move { kubelet.run(client, clock).await }));
        self
    }

    /// Lets this much time pass, with everything that happens meanwhile.
    pub async fn advance(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// How many writes the controllers have attempted, whatever the result.
    pub fn writes(&self) -> u64 {
        let metrics = self.context.watches.process().metrics();
        let counted = metrics
            .lines()
            .filter(|line| line.starts_with("neaptide_writes_total{"));
        let numbers = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }

    /// The requests of the components since the last call, each with its count.
    pub fn calls(&self) -> BTreeMap<ApiCall, usize> {
        self.calls.take()
    }

    /// Fails if a task has ended: none may end before the test does.
    pub fn assert_all_run(&mut self) {
        let ended = self.tasks.try_join_next();
        assert!(
            ended.is_none(),
            "a component or the node has ended: {ended:?}"
        );
    }

    /// The objects of a kind in the namespace of the test.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Creates an object.
    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = self.api().create(&PostParams::default(), &object).await;
        made.unwrap()
    }

    /// The object of this name, which must exist.
    pub async fn get<K>(&self, name: &str) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().get(name).await.unwrap()
    }

    /// All objects of a kind in the namespace of the test.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api().list(&ListParams::default()).await.unwrap().items
    }

    /// Merges a patch into an object.
    pub async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (api, parameters, patch) = (self.api(), PatchParams::default(), Patch::Merge(patch));
        api.patch(name, &parameters, &patch).await.unwrap()
    }

    /// Merges a patch into the status of an object.
    pub async fn patch_status<K>(&self, name: &str, status: Value) -> K
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
    pub async fn create_cluster_scoped<K>(&self, object: Value) -> K
    where
        K: Object + Resource<Scope = ClusterResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        let made = Api::all(self.client.clone())
            .create(&PostParams::default(), &object)
            .await;
        made.unwrap()
    }

    /// Deletes an object.
    pub async fn delete<K>(&self, name: &str)
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

impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use kube::CustomResourceExt;
    use neap_kit::{
        apply, builder::ControllerBuilder, controller::Outcome, key::Key, operation::Operation,
    };
    use serde_json::json;

    use super::*;
    use crate::PodBehavior;

    fn counting(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
        let mut builder = ControllerBuilder::new(context, "shadow");
        let maps = builder.primary::<ConfigMap>()?;
        let state = (maps, builder.tools());
        let reconcile = |state: Arc<(_, neap_kit::builder::Tools)>, key: Key| async move {
            shadow(&state, &key).await
        };
        Ok(vec![builder.build(state, reconcile)])
    }

    async fn shadow(
        (maps, tools): &(neap_kit::watch::Cache<ConfigMap>, neap_kit::builder::Tools),
        key: &Key,
    ) -> Result<Outcome, apply::Error> {
        let Some(map) = maps.get(key).filter(|_| key.name() == "light") else {
            return Ok(Outcome::Gone);
        };
        let mut shadow = ConfigMap::clone(&map);
        shadow.metadata = kube::api::ObjectMeta {
            name: Some("shadow".into()),
            namespace: map.namespace(),
            ..Default::default()
        };
        tools.writer.create(&shadow).await?;
        Ok(Outcome::Done)
    }

    #[tokio::test(start_paused = true)]
    async fn components_run_and_their_writes_and_calls_are_counted() {
        let mut cluster = TestCluster::start_with([Operation::crd()], counting).await;
        cluster.calls();
        let _: ConfigMap = cluster.create(json!({"metadata": {"name": "light"}})).await;
        let api = cluster.api::<ConfigMap>();
        cluster
            .eventually("there is a shadow", async || {
                api.get_opt("shadow").await.unwrap().is_some()
            })
            .await;
        assert_eq!(cluster.writes(), 1);
        let posted = cluster
            .calls()
            .into_keys()
            .find(|call| call.method == "POST");
        assert!(
            posted.unwrap().path.ends_with("/configmaps"),
            "of the component alone"
        );
        let operations: Vec<Operation> = cluster.list().await;
        assert!(operations.is_empty(), "and its kind is served");
        cluster.assert_all_run();
    }

    #[tokio::test(start_paused = true)]
    async fn pods_behave_as_their_label_says() {
        let kubelet = Kubelet::default().behavior("fails", PodBehavior::Ends(1, Duration::ZERO));
        let cluster = TestCluster::start(|_| Ok(vec![]))
            .await
            .with_kubelet(kubelet);
        let pod = json!({
            "metadata": {"name": "a", "labels": {"behavior": "fails"}},
            "spec": {"containers": [{"name": "main", "image": "app"}]},
        });
        let _: Pod = cluster.create(pod).await;
        cluster
            .eventually("the pod fails", async || {
                let pod: Pod = cluster.get("a").await;
                pod.status.and_then(|status| status.phase).as_deref() == Some("Failed")
            })
            .await;
    }
}
