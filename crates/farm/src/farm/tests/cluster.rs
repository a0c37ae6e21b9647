//! A server with the operator, and a scheduler in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Pod, Service, ServiceAccount},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::Object, clock::Clock, context::Context, lease::Leadership, operation::Operation,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::stand_ins::{FakeQueue, InProcess};
use crate::{
    api::{
        ANNOTATION_REVISION, BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler,
        BuildbarnStorage, BuildbarnWorker, ComponentStatus, ReshardingStage, State, definitions,
    },
    farm::controller::{Settings, component},
    jsonnet::Evaluate,
};

type RecordedCalls = Arc<Mutex<Vec<(String, String)>>>;
/// Group, resource and verb.
pub(super) type UsedRight = (String, String, String);
type UsedRights = Arc<Mutex<BTreeSet<UsedRight>>>;
type FailingPath = Arc<Mutex<Option<String>>>;

/// The right that a request uses; none for requests that need none.
fn right(request: &http::Request<kube::client::Body>) -> Option<UsedRight> {
    let parts: Vec<_> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match parts[..] {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return None,
    };
    let (["namespaces", _, rest @ ..] | rest) = rest;
    let (resource, is_one) = match rest {
        [] => return None,
        [resource] => ((*resource).to_owned(), false),
        [resource, _] => ((*resource).to_owned(), true),
        [resource, _, part, ..] => (format!("{resource}/{part}"), true),
    };
    let query = request.uri().query().unwrap_or_default();
    let verb = match (request.method().as_str(), is_one) {
        ("GET", true) => "get",
        ("GET", false) if query.contains("watch=true") => "watch",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        _ => "delete",
    };
    Some((group.to_owned(), resource, verb.to_owned()))
}

/// The client of the operator, whose requests are recorded, and whose writes to a path may fail.
fn operator_client(
    pocket: &Pocket,
    calls: RecordedCalls,
    rights: UsedRights,
    failing: FailingPath,
) -> Client {
    let service = pocket.service();
    let service = service.map_request(move |mut request: http::Request<kube::client::Body>| {
        let path = request.uri().path().to_owned();
        let writes = request.method() != http::Method::GET;
        if writes && failing.lock().as_ref().is_some_and(|it| path.ends_with(it)) {
            *request.uri_mut() = http::Uri::from_static("/nowhere");
        }
        calls.lock().push((request.method().to_string(), path));
        rights.lock().extend(right(&request));
        request
    });
    Client::new(service, "default")
}

pub(super) struct TestCluster {
    pub(super) client: Client,
    pub(super) queue: Arc<FakeQueue>,
    clock: Clock,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    calls: RecordedCalls,
    rights: UsedRights,
    rolled: Mutex<Vec<String>>,
    /// Workloads whose pods never become ready.
    broken: Mutex<BTreeSet<String>>,
    /// The end of the path of writes that fail.
    failing: FailingPath,
    _pocket: Pocket,
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.abort_all();
    }
}

impl TestCluster {
    /// A server with the definitions and the operator.
    pub(super) async fn open() -> Self {
        Self::evaluated_by(Arc::new(InProcess)).await
    }

    /// The same with another evaluator of configurations.
    pub(super) async fn evaluated_by(evaluator: Arc<dyn Evaluate>) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let calls = RecordedCalls::default();
        let rights = UsedRights::default();
        let failing = FailingPath::default();
        let operator = operator_client(&pocket, calls.clone(), rights.clone(), failing.clone());
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: operator,
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let queue = Arc::<FakeQueue>::default();
        let mut cluster = Self {
            client,
            queue: queue.clone(),
            clock,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            calls,
            rights,
            rolled: Mutex::default(),
            broken: Mutex::default(),
            failing,
            _pocket: pocket,
        };
        let all = Api::all(cluster.client.clone());
        for definition in definitions().into_iter().chain([Operation::crd()]) {
            all.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        cluster.pass(Duration::from_secs(1)).await;
        let settings = Settings {
            evaluator,
            queue,
            operator_namespace: "buildbarn-system".to_owned(),
        };
        let operator = component(&context, settings).unwrap();
        cluster.tasks.spawn(operator.run(cluster.stop.clone()));
        cluster.tasks.spawn(watching.run(cluster.stop.clone()));
        cluster
    }

    /// The same with a farm whose components are ready.
    pub(super) async fn ready() -> Self {
        let cluster = Self::open().await;
        cluster.farm().await;
        cluster.pass(Duration::from_secs(1)).await;
        cluster.pods_are_ready().await;
        cluster.pass(Duration::from_secs(1)).await;
        assert_eq!(cluster.states().await, [State::Ready; 5]);
        cluster.rolled.lock().clear();
        cluster
    }

    pub(super) async fn farm(&self) {
        let object = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        self.create::<BuildbarnStorage>(object("storage", json!({})))
            .await;
        self.create::<BuildbarnScheduler>(object("scheduler", json!({})))
            .await;
        self.create::<BuildbarnWorker>(object("ubuntu22-04", json!({"replicas": 3})))
            .await;
        self.create::<BuildbarnFrontend>(object("frontend", json!({})))
            .await;
        self.create::<BuildbarnBrowser>(object("browser", json!({})))
            .await;
        self.pass(Duration::from_secs(1)).await;
    }

    pub(super) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(super) async fn create<K>(&self, object: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api::<K>()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(super) async fn get<K>(&self, name: &str) -> Option<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>().get_opt(name).await.unwrap()
    }

    pub(super) async fn list<K>(&self) -> Vec<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    pub(super) async fn names<K>(&self) -> Vec<String>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.list::<K>()
            .await
            .iter()
            .map(ResourceExt::name_any)
            .collect()
    }

    pub(super) async fn remove<K>(&self, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(super) async fn merge<K>(&self, name: &str, change: Value)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(&change);
        self.api::<K>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn refuses<K>(&self, name: &str, change: Value) -> bool
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let patch = Patch::Merge(&change);
        self.api::<K>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .is_err()
    }

    /// Writes the status of all workloads, as their controllers would when all pods are ready.
    pub(super) async fn pods_are_ready(&self) {
        for workload in self.list::<Deployment>().await {
            let replicas = workload
                .spec
                .as_ref()
                .and_then(|it| it.replicas)
                .unwrap_or(1);
            self.mark::<Deployment>(&workload, replicas).await;
        }
        for workload in self.list::<StatefulSet>().await {
            let replicas = workload
                .spec
                .as_ref()
                .and_then(|it| it.replicas)
                .unwrap_or(1);
            self.mark::<StatefulSet>(&workload, replicas).await;
        }
    }

    async fn mark<K>(&self, workload: &K, replicas: i32)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let generation = workload.meta().generation;
        let broken = self.broken.lock().contains(&workload.name_any());
        let value = serde_json::to_value(workload).unwrap();
        // The former pods of a broken workload stay beside the new ones.
        let (existing, ready) = if broken {
            (replicas * 2, 0)
        } else {
            (replicas, replicas)
        };
        let status = json!({
            "observedGeneration": generation, "replicas": existing, "readyReplicas": ready,
            "updatedReplicas": replicas,
        });
        if value["status"]["observedGeneration"] == json!(generation) {
            return;
        }
        self.rolled.lock().push(workload.name_any());
        let patch = Patch::Merge(json!({"status": status}));
        let name = workload.name_any();
        self.api::<K>()
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// The pods of this workload do not become ready from now on.
    pub(super) fn break_pods(&self, workload: &str) {
        self.broken.lock().insert(workload.to_owned());
    }

    /// Serves ServiceMonitors from now on, as after the installation of a Prometheus operator.
    pub(super) async fn serve_monitors(&self) {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
        });
        let definition = serde_json::from_value(json!({
            "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
            "spec": {
                "group": "monitoring.coreos.com",
                "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
                "scope": "Namespaced",
                "versions": [version],
            },
        }));
        let all = Api::<CustomResourceDefinition>::all(self.client.clone());
        let definition = definition.unwrap();
        all.create(&PostParams::default(), &definition)
            .await
            .unwrap();
        // The watch tries again every few seconds.
        self.pass(Duration::from_secs(15)).await;
    }

    /// Writes to this path fail from now on, in a way that may pass.
    pub(super) fn fail_writes(&self, path: &str) {
        *self.failing.lock() = Some(path.to_owned());
    }

    /// Lets the controllers of the cluster follow until nothing changes any more.
    pub(super) async fn settle(&self) {
        for _ in 0..14 {
            self.pass(Duration::from_secs(3)).await;
            self.pods_are_ready().await;
        }
        self.pass(Duration::from_secs(3)).await;
    }

    /// The workloads whose pods became ready, in order.
    pub(super) fn rolled_out(&self) -> Vec<String> {
        self.rolled.lock().clone()
    }

    /// The workloads that have a version whose pods are not ready.
    pub(super) async fn outdated(&self) -> Vec<String> {
        let mut names = Vec::new();
        for it in self.list::<Deployment>().await {
            let seen = it.status.as_ref().and_then(|it| it.observed_generation);
            if seen != it.metadata.generation {
                names.push(it.name_any());
            }
        }
        for it in self.list::<StatefulSet>().await {
            let seen = it.status.as_ref().and_then(|it| it.observed_generation);
            if seen != it.metadata.generation {
                names.push(it.name_any());
            }
        }
        names
    }

    async fn statuses(&self) -> Vec<ComponentStatus> {
        let mut all = Vec::new();
        all.extend(
            self.list::<BuildbarnStorage>()
                .await
                .into_iter()
                .map(|it| it.status),
        );
        all.extend(
            self.list::<BuildbarnScheduler>()
                .await
                .into_iter()
                .map(|it| it.status),
        );
        all.extend(
            self.list::<BuildbarnWorker>()
                .await
                .into_iter()
                .map(|it| it.status),
        );
        all.extend(
            self.list::<BuildbarnFrontend>()
                .await
                .into_iter()
                .map(|it| it.status),
        );
        all.extend(
            self.list::<BuildbarnBrowser>()
                .await
                .into_iter()
                .map(|it| it.status),
        );
        all.into_iter().map(Option::unwrap_or_default).collect()
    }

    pub(super) async fn states(&self) -> Vec<State> {
        let statuses = self.statuses().await.into_iter();
        statuses
            .map(|it| it.state.unwrap_or(State::Unknown))
            .collect()
    }

    /// The reason of the condition Ready.
    pub(super) async fn reason<K>(&self, name: &str) -> String
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.condition::<K>(name, "Ready").await.0
    }

    /// The reason and the message of a condition; empty if there is none.
    pub(super) async fn condition<K>(&self, name: &str, type_: &str) -> (String, String)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let object = serde_json::to_value(self.get::<K>(name).await).unwrap();
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let found = conditions.iter().find(|it| it["type"] == type_);
        let text = |field: &str| {
            let found = found.and_then(|it| it[field].as_str());
            found.unwrap_or_default().to_owned()
        };
        (text("reason"), text("message"))
    }

    /// The rights that the operator has used.
    pub(super) fn rights(&self) -> BTreeSet<UsedRight> {
        self.rights.lock().clone()
    }

    pub(super) fn calls(&self) -> Vec<String> {
        let calls = self.calls.lock();
        let writes = calls.iter().filter(|(method, _)| method != "GET");
        writes
            .map(|(method, path)| format!("{method} {path}"))
            .collect()
    }

    pub(super) fn writes(&self) -> usize {
        self.calls().len()
    }

    pub(super) async fn objects(&self) -> usize {
        self.list::<ConfigMap>().await.len()
            + self.list::<ServiceAccount>().await.len()
            + self.list::<Service>().await.len()
            + self.list::<Deployment>().await.len()
            + self.list::<StatefulSet>().await.len()
            + self.list::<Ingress>().await.len()
            + self.list::<PodDisruptionBudget>().await.len()
            + self.list::<NetworkPolicy>().await.len()
    }

    pub(super) async fn replicas(&self, name: &str) -> i32 {
        let deployment: Deployment = self.get(name).await.unwrap();
        deployment.spec.unwrap().replicas.unwrap()
    }

    pub(super) async fn storage_replicas(&self) -> i32 {
        let storage: StatefulSet = self.get("storage").await.unwrap();
        storage.spec.unwrap().replicas.unwrap()
    }

    pub(super) async fn stage(&self) -> Option<ReshardingStage> {
        let storage: BuildbarnStorage = self.get("storage").await.unwrap();
        let change = storage.status.unwrap().storage.unwrap().resharding;
        change.map(|it| it.stage)
    }

    pub(super) async fn revision(&self, name: &str) -> String {
        let deployment: Deployment = self.get(name).await.unwrap();
        deployment.annotations()[ANNOTATION_REVISION].clone()
    }

    /// The files that are mounted into the pods of a Deployment.
    pub(super) async fn rendered(&self, name: &str) -> BTreeMap<String, String> {
        let deployment: Deployment = self.get(name).await.unwrap();
        let pod = deployment.spec.unwrap().template.spec.unwrap();
        let volumes = pod.volumes.unwrap();
        let configs = volumes.iter().find(|it| it.name == "configs").unwrap();
        let name = &configs.config_map.as_ref().unwrap().name;
        let config_map: ConfigMap = self.get(name).await.unwrap();
        config_map.data.unwrap()
    }

    pub(super) async fn frontend_config(&self) -> String {
        let files = self.rendered("frontend").await;
        files.into_values().collect()
    }

    pub(super) async fn put_config_map(&self, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let api = self.api::<ConfigMap>();
        let _ = api.delete(&name, &DeleteParams::default()).await;
        self.create::<ConfigMap>(object).await;
    }

    pub(super) async fn worker_pod(&self, name: &str) {
        let labels = json!({
            "app": "worker", "component": "ubuntu22-04", "instance": "ubuntu22-04",
            "app.kubernetes.io/managed-by": "buildbarn-operator",
        });
        let pod = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": "n", "containers": [{"name": "worker", "image": "worker"}]},
        });
        self.create::<Pod>(pod).await;
        let status = json!({"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        }});
        let patch = Patch::Merge(&status);
        self.api::<Pod>()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn remove_pod(&self, name: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.api::<Pod>().delete(name, &now).await.unwrap();
    }

    /// All objects that were made, without what the server adds.
    pub(super) async fn dump(&self) -> String {
        let mut text = String::new();
        dump(&self.list::<ServiceAccount>().await, &mut text);
        dump(&self.list::<Service>().await, &mut text);
        dump(&self.list::<Deployment>().await, &mut text);
        dump(&self.list::<StatefulSet>().await, &mut text);
        dump(&self.list::<Ingress>().await, &mut text);
        dump(&self.list::<PodDisruptionBudget>().await, &mut text);
        dump(&self.list::<NetworkPolicy>().await, &mut text);
        text
    }
}

fn dump<K: Object>(objects: &[K], text: &mut String) {
    for object in objects {
        let mut value = serde_json::to_value(object).unwrap();
        value.as_object_mut().unwrap().remove("status");
        let metadata = value["metadata"].as_object_mut().unwrap();
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "generation",
        ] {
            metadata.remove(field);
        }
        for owner in metadata
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            owner.as_object_mut().unwrap().remove("uid");
        }
        if let Some(spec) = value["spec"].as_object_mut() {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(field);
            }
        }
        text.push_str(&serde_json::to_string_pretty(&value).unwrap());
        text.push('\n');
    }
}
