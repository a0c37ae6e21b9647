//! A pool that shrinks while its workers execute actions, over gRPC from the client to the worker.

#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::{BoxFuture, ready};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Pod,
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use neap_emulators::{
    build_queue::{Platform, SizeClassQueueName},
    remote_execution::{
        RemoteExecution,
        client::{RemoteExecutionClient, WorkerClient},
        messages::{BlobDigest, ExecuteResponse},
    },
    system::{Emulator, System},
};
use neap_farm::{
    api::{BuildbarnWorkerSpec, definitions},
    farm::controller::{Settings, component},
    jsonnet::{Evaluate, EvaluationError},
    platform::QueueName,
    queue::{Connection, ConnectionError, Dial, GrpcBuildQueue},
};
use neap_kit::{
    client::Body, clock::Clock, context::Context, lease::Leadership, operation::Operation,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tonic::Status;

const SECOND: Duration = Duration::from_secs(1);
/// How long an action runs.
const ACTION: Duration = Duration::from_secs(7);
const ACTIONS: usize = 60;
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// No configuration here is a user's.
#[derive(Debug)]
struct NoEvaluation;

impl Evaluate for NoEvaluation {
    fn evaluate<'a>(
        &'a self,
        _: &'a BTreeMap<String, String>,
        _: &'a str,
        _: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>> {
        Box::pin(ready(Err(EvaluationError::Failed("none".to_owned()))))
    }
}

/// Connects the operator to the emulated scheduler.
struct ToFarm(Arc<RemoteExecution>);

impl Dial for ToFarm {
    fn dial(&self, _: &str) -> Result<Connection, String> {
        let farm = self.0.clone();
        Ok(Connection::new(tower::service_fn(
            move |request: http::Request<tonic::body::Body>| {
                let answer = farm.clone().respond(request.map(Body::new));
                async move { Ok::<_, ConnectionError>(answer.await.map(tonic::body::Body::new)) }
            },
        )))
    }
}

struct TestFarm {
    client: Client,
    clock: Clock,
    farm: Emulator<RemoteExecution>,
    tasks: JoinSet<()>,
    /// The workers that run, by their pods.
    workers: BTreeMap<String, AbortHandle>,
    /// How often each action was begun.
    begun: Arc<Mutex<BTreeMap<BlobDigest, usize>>>,
    stop: CancellationToken,
    _pocket: Pocket,
}

fn queue() -> SizeClassQueueName {
    let name = QueueName::of(&BuildbarnWorkerSpec::default());
    let properties: Vec<_> = name
        .platform
        .iter()
        .map(|it| (&*it.name, &*it.value))
        .collect();
    SizeClassQueueName::of_platform(&properties)
}

impl TestFarm {
    async fn open() -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let all = Api::all(client.clone());
        for definition in definitions().into_iter().chain([Operation::crd()]) {
            all.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        clock.sleep(SECOND).await;
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let farm = Emulator::new(RemoteExecution::new(clock), clock);
        let settings = Settings {
            evaluator: Arc::new(NoEvaluation),
            queue: Arc::new(GrpcBuildQueue::with_dial(
                ToFarm(farm.system().clone()),
                clock,
            )),
            operator_namespace: "buildbarn-system".to_owned(),
        };
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        let operator = component(&context, settings).unwrap();
        tasks.spawn(operator.run(stop.clone()));
        tasks.spawn(watching.run(stop.clone()));
        Self {
            client,
            clock,
            farm,
            tasks,
            workers: BTreeMap::new(),
            begun: Arc::default(),
            stop,
            _pocket: pocket,
        }
    }

    fn kind(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("buildbarn.io", "v1alpha1", kind);
        Api::namespaced_with(
            self.client.clone(),
            "default",
            &ApiResource::from_gvk(&kind),
        )
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let object = serde_json::from_value(json!({
            "apiVersion": "buildbarn.io/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        }));
        let api = self.kind(kind);
        api.create(&PostParams::default(), &object.unwrap())
            .await
            .unwrap();
    }

    /// A second of the controllers of workloads and of the kubelet.
    async fn pass(&mut self) {
        self.clock.sleep(SECOND).await;
        let all = ListParams::default();
        let deployments = Api::<Deployment>::default_namespaced(self.client.clone());
        for it in deployments.list(&all).await.unwrap() {
            let replicas = it.spec.as_ref().and_then(|it| it.replicas).unwrap_or(1);
            if it.name_any() == "linux" {
                self.follow(replicas).await;
            }
            let status = status(replicas, it.metadata.generation);
            let (name, params) = (it.name_any(), PatchParams::default());
            deployments
                .patch_status(&name, &params, &Patch::Merge(status))
                .await
                .unwrap();
        }
        let sets = Api::<StatefulSet>::default_namespaced(self.client.clone());
        for it in sets.list(&all).await.unwrap() {
            let replicas = it.spec.as_ref().and_then(|it| it.replicas).unwrap_or(1);
            let status = status(replicas, it.metadata.generation);
            let (name, params) = (it.name_any(), PatchParams::default());
            sets.patch_status(&name, &params, &Patch::Merge(status))
                .await
                .unwrap();
        }
    }

    /// Creates and deletes the pods of the pool. A worker ends with its pod, whatever it does.
    async fn follow(&mut self, replicas: i32) {
        let pods = Api::<Pod>::default_namespaced(self.client.clone());
        let mut found = pods.list(&ListParams::default()).await.unwrap().items;
        found.sort_by_key(|pod| {
            let cost = pod.annotations().get(COST);
            cost.and_then(|it| it.parse::<i64>().ok()).unwrap_or(0)
        });
        let excess = found.len().saturating_sub(replicas as usize);
        for pod in found.iter().take(excess) {
            let name = pod.name_any();
            let params = DeleteParams::default().grace_period(0);
            pods.delete(&name, &params).await.unwrap();
            self.workers.remove(&name).unwrap().abort();
            self.farm.system().remove_worker(&worker_id(&name));
        }
        for number in 0..(replicas as usize).saturating_sub(found.len()) {
            self.start_worker(&pods, &format!("linux-{number}")).await;
        }
    }

    async fn start_worker(&mut self, pods: &Api<Pod>, name: &str) {
        let labels = json!({
            "app": "worker", "component": "linux", "instance": "linux",
            "app.kubernetes.io/managed-by": "buildbarn-operator",
        });
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": "n", "containers": [{"name": "worker", "image": "worker"}]},
        }));
        pods.create(&PostParams::default(), &pod.unwrap())
            .await
            .unwrap();
        let status = json!({"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        }});
        let (patch, params) = (Patch::Merge(&status), PatchParams::default());
        pods.patch_status(name, &params, &patch).await.unwrap();
        let client = RemoteExecutionClient::new(self.farm.transport());
        let worker = WorkerClient::new(client, queue(), worker_id(name));
        let (begun, clock) = (self.begun.clone(), self.clock);
        let task = self.tasks.spawn(async move {
            loop {
                let Some(order) = worker.next().await.unwrap() else {
                    continue;
                };
                let action = order.action_digest.unwrap();
                *begun.lock().entry(action.clone()).or_default() += 1;
                clock.sleep(ACTION).await;
                worker.complete(&action, 0).await.unwrap();
            }
        });
        self.workers.insert(name.to_owned(), task);
    }

    /// Executes different actions at the same time.
    async fn load(&self) -> JoinSet<Result<ExecuteResponse, Status>> {
        let client = RemoteExecutionClient::new(self.farm.transport());
        let platform: Platform = queue().platform_queue_name.unwrap().platform.unwrap();
        let mut executions = JoinSet::new();
        for number in 0..ACTIONS {
            let number = number.to_string();
            let arguments = ["run", &*number];
            let action = client.upload_action(&arguments, platform.clone());
            let (action, client) = (action.await.unwrap(), client.clone());
            executions.spawn(async move { client.execute(action).await });
        }
        executions
    }
}

fn worker_id(pod: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("node".to_owned(), "n".to_owned()),
        ("pod".to_owned(), pod.to_owned()),
    ])
}

fn status(replicas: i32, generation: Option<i64>) -> Value {
    json!({"status": {
        "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
        "updatedReplicas": replicas, "availableReplicas": replicas,
    }})
}

impl Drop for TestFarm {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.abort_all();
    }
}

#[tokio::test(start_paused = true)]
async fn each_action_is_executed_once_while_a_pool_of_four_shrinks_to_one() {
    let mut test = TestFarm::open().await;
    test.create("BuildbarnStorage", "storage", json!({})).await;
    test.create("BuildbarnScheduler", "scheduler", json!({}))
        .await;
    let pool = json!({"replicas": 4, "instance": "linux"});
    test.create("BuildbarnWorker", "linux", pool).await;
    test.create("BuildbarnFrontend", "frontend", json!({}))
        .await;
    test.create("BuildbarnBrowser", "browser", json!({})).await;
    while test.workers.len() < 4 {
        test.pass().await;
    }
    for _ in 0..20 {
        test.pass().await;
    }
    let mut executions = test.load().await;
    for _ in 0..10 {
        test.pass().await;
    }
    let smaller = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let pools = test.kind("BuildbarnWorker");
    pools
        .patch("linux", &PatchParams::default(), &smaller)
        .await
        .unwrap();
    let mut ended = Vec::new();
    let mut sizes = BTreeSet::new();
    while ended.len() < ACTIONS {
        test.pass().await;
        sizes.insert(test.workers.len());
        while let Some(execution) = executions.try_join_next() {
            ended.push(execution.unwrap().unwrap());
        }
    }
    assert_eq!(test.workers.len(), 1, "it shrank under load: {sizes:?}");
    for response in ended {
        assert_eq!(response.status, None);
        assert_eq!(response.result.unwrap().exit_code, 0);
    }
    let begun = test.begun.lock();
    assert_eq!(begun.len(), ACTIONS);
    let twice: Vec<_> = begun.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
