//! The processes of a workload: the operator, the controllers of its workloads, and the workers.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::{CustomResourceExt, ResourceExt};
use neap_farm::{
    api::{APP_LABEL, definitions},
    farm::controller::{self, Settings},
    jsonnet::{Evaluate, EvaluationError, EvaluationRequest, EvaluationResponse, evaluate},
    queue::{BuildQueue, Connection, ConnectionError, Dial, GrpcBuildQueue},
};
use neap_kit::{
    apply::Error,
    builder::ControllerBuilder,
    client::{Body, Transport},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    operation::Operation,
    watch::{Cache, WatchesStopped},
    why::chain,
};
use neap_trial::{Node, UserRequest, Workload, external::ExternalClient};
use neap_world::{deployment, replica_set, stateful_set};
use serde_json::Value;
use tower::ServiceExt;

use crate::scheduler::{self, HOST, SYNC, WorkerReport};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";
/// How long a worker waits before it reports again.
const REPORT_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// How many operators there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replicas {
    /// One, which always leads.
    One,
    /// Two, which elect a leader.
    Two,
}

/// Opens what an operator asks about the queues of schedulers.
pub(crate) type OpenQueue = fn(&Context, &ExternalClient) -> Arc<dyn BuildQueue>;

/// What the operator applies, and what copies the annotations of that.
const APPLIED: [&str; 10] = [
    "ConfigMap",
    "ControllerRevision",
    "Deployment",
    "Ingress",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ReplicaSet",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

/// A workload with its processes, its scheduler, and the definitions.
pub(crate) fn workload(name: &'static str, replicas: Replicas, queue: OpenQueue) -> Workload {
    let mut workload = Workload::new(name)
        .without_poison(
            "how long a drain takes depends on when it begins: on the actions that run then",
        )
        .service(HOST, scheduler::open);
    for kind in APPLIED {
        let why = "it is a hash of what was applied, and that has the uid of the owner";
        workload = workload.differs(kind, "/metadata/annotations/neaptide.dev~1applied", why);
    }
    for definition in definitions().into_iter().chain([Operation::crd()]) {
        let definition = serde_json::to_value(definition).unwrap_or_default();
        workload = workload.given(UserRequest::Create(definition));
    }
    let (names, lease): (&[_], _) = match replicas {
        Replicas::One => (&["operator"], None),
        Replicas::Two => (&["operator", "operator-two"], Some("farm-operator")),
    };
    for name in names {
        workload = workload.process(name, lease, move |context, external| {
            operator(context, queue(context, external))
        });
    }
    workload
        .actor("controllers", |context| {
            Ok(vec![
                deployment::component(context)?,
                replica_set::component(context)?,
                stateful_set::component(context)?,
            ])
        })
        .process("workers", None, workers)
        .node(Node::default())
}

/// Asks the scheduler of the workload, by the production client.
pub(crate) fn asking(context: &Context, external: &ExternalClient) -> Arc<dyn BuildQueue> {
    let dial = ToScheduler(external.transport());
    Arc::new(GrpcBuildQueue::with_dial(dial, context.clock))
}

fn operator(
    context: &Context,
    queue: Arc<dyn BuildQueue>,
) -> Result<Vec<Component>, WatchesStopped> {
    let settings = Settings {
        evaluator: Arc::new(InProcess),
        queue,
        operator_namespace: "buildbarn-system".to_owned(),
    };
    Ok(vec![controller::component(context, settings)?])
}

/// Connects to the scheduler of the workload, whatever the address.
struct ToScheduler(Transport);

impl Dial for ToScheduler {
    fn dial(&self, _: &str) -> Result<Connection, String> {
        let transport = self.0.clone();
        Ok(Connection::new(tower::service_fn(
            move |request: Request<tonic::body::Body>| {
                let transport = transport.clone();
                async move {
                    let (mut head, body) = request.into_parts();
                    let address = format!("http://{HOST}{}", head.uri.path());
                    let address = address.parse();
                    head.uri = address.map_err(|error| failed(&error))?;
                    let request = Request::from_parts(head, Body::new(body));
                    let response = transport.oneshot(request).await;
                    let response = response.map_err(|error| failed(&error))?;
                    Ok(response.map(tonic::body::Body::new))
                }
            },
        )))
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ConnectionError {
    ConnectionError(chain(error))
}

/// Evaluates the configurations of users in this process: those of a workload end.
#[derive(Debug)]
struct InProcess;

impl Evaluate for InProcess {
    fn evaluate<'a>(
        &'a self,
        files: &'a BTreeMap<String, String>,
        main: &'a str,
        variables: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>> {
        let request = EvaluationRequest {
            files: files.clone(),
            main: main.to_owned(),
            variables: variables.clone(),
        };
        let value = match evaluate(&request) {
            EvaluationResponse::Value(value) => Ok(value),
            EvaluationResponse::Failed(message) => Err(EvaluationError::Failed(message)),
        };
        Box::pin(std::future::ready(value))
    }
}

/// Registers the workers of pods that run at the scheduler. This process is under faults as well.
struct Registrar {
    pods: Cache<Pod>,
    transport: Transport,
}

fn workers(context: &Context, external: &ExternalClient) -> Result<Vec<Component>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "workers");
    let registrar = Registrar {
        pods: builder.primary()?,
        transport: external.transport(),
    };
    Ok(vec![builder.build(registrar, Registrar::reconcile)])
}

impl Registrar {
    async fn reconcile(self: Arc<Self>, _: Key) -> Result<Outcome, Error> {
        let mut report = WorkerReport::default();
        for pod in self.pods.list(NAMESPACE) {
            let is_running = is_ready(&pod) && pod.metadata.deletion_timestamp.is_none();
            match pod.labels().get(APP_LABEL).map(String::as_str) {
                Some("worker") if is_running => {
                    report.workers.insert(pod.name_any());
                }
                Some("scheduler") if is_running => report.scheduler = pod.uid(),
                _ => {}
            }
        }
        if self.send(&report).await {
            Ok(Outcome::Done)
        } else {
            Ok(Outcome::RequeueAfter(REPORT_RETRY))
        }
    }

    async fn send(&self, report: &WorkerReport) -> bool {
        let body = serde_json::to_vec(report).unwrap_or_default();
        let request = Request::post(format!("http://{HOST}{SYNC}")).body(Body::from(body));
        let Ok(request) = request else {
            return false;
        };
        let response = self.transport.clone().oneshot(request).await;
        response.is_ok_and(|response| response.status().is_success())
    }
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
