//! The end of work: one transaction for cluster, operation and timeline.

use neap_kit::operation::OperationOutcome;
use neap_store::{AuditRow, Commit, Document, Lease, Precondition, QueueChange, Write};
use serde_json::{Value, json};

use crate::{
    cloud_error::CloudError,
    cluster::states,
    documents::{
        OPERATION_TTL, OPERATIONS, TIMELINES, remove, subscription_document, text, unique_keys,
        without_secrets,
    },
    state::{AfterWork, ProvisioningState, WorkResult, after_work},
};

/// What the end of work depends on.
#[derive(Debug)]
pub struct EndFacts<'a> {
    /// The cluster document.
    pub cluster: &'a Document,
    /// The document of the operation, if it is still there.
    pub operation: Option<&'a Document>,
    /// The timeline, if there is one.
    pub timeline: Option<&'a Document>,
    /// The lease of the worker.
    pub lease: &'a Lease,
    /// How it ended.
    pub outcome: &'a OperationOutcome,
    /// What customers are told of a failure, if the step said it.
    pub told: Option<CloudError>,
    /// The current time.
    pub now: String,
}

/// Texts for customers when a condition did not hold in time.
const TIMEOUTS: [(&str, &str); 8] = [
    (
        "apiServersReady",
        "The API servers of the cluster did not become ready",
    ),
    (
        "minimumWorkerNodesReady",
        "Too few workers of the cluster became ready",
    ),
    (
        "operatorConsoleExists",
        "The console of the cluster was not installed",
    ),
    (
        "operatorConsoleReady",
        "The console of the cluster did not become ready",
    ),
    (
        "clusterVersionReady",
        "The version of the cluster did not become available",
    ),
    (
        "ingressControllerReady",
        "The ingress of the cluster did not become ready",
    ),
    (
        "hiveClusterInstallationComplete",
        "The installation of the cluster did not complete",
    ),
    (
        "clusterOperatorsHaveSettled",
        "The operators of the cluster did not settle",
    ),
];

/// What customers are told about the failure of a step.
pub(super) fn customer_error(step: &str, message: &str, told: Option<CloudError>) -> CloudError {
    if let Some(told) = told {
        return told;
    }
    let known = TIMEOUTS.iter().find(|(name, _)| *name == step);
    let what = known.map_or("A step of the operation failed", |(_, what)| what);
    CloudError::new(
        500,
        "DeploymentFailed",
        step,
        format!(
            "{what}: {message}. Retry the operation; if it fails again, open a support ticket with the operation id."
        ),
    )
}

/// The transaction that ends work. Pure.
pub(super) fn end(facts: &EndFacts<'_>) -> Commit {
    let document = &facts.cluster.body;
    let (state, failed) = states(document);
    let last = "/openShiftCluster/properties/lastProvisioningState";
    let last = ProvisioningState::parse(text(document, last));
    let (result, error) = match facts.outcome {
        OperationOutcome::Succeeded => (WorkResult::Done, None),
        OperationOutcome::Failed { step, cause } => {
            let told = facts.told.clone();
            (
                WorkResult::Failed,
                Some(customer_error(step, &cause.message, told)),
            )
        }
        OperationOutcome::Cancelled { step, cause } => {
            let step = step.as_deref().unwrap_or_default();
            let error = CloudError::new(409, "OperationCanceled", step, &*cause.message);
            (WorkResult::Canceled, Some(error))
        }
    };
    let after = after_work(state, last, failed, &result);
    let ended = cluster_after(document, &after);
    let lease = facts.lease.clone();
    let commit = Commit::default().with(if after.delete {
        Write::Delete {
            key: lease.key.clone(),
            precondition: Precondition::EtagAndLease(facts.cluster.etag, lease.clone()),
        }
    } else {
        Write::Put {
            key: lease.key.clone(),
            precondition: Precondition::EtagAndLease(facts.cluster.etag, lease.clone()),
            unique: unique_keys(&ended),
            body: ended.clone(),
            ttl: None,
            queue: QueueChange::Done,
        }
    });
    let snapshot = (!after.delete).then(|| without_secrets(&ended["openShiftCluster"]));
    let commit = end_operation(commit, facts, &after, error.as_ref(), snapshot);
    commit
        .announce(
            "cluster-operation-ended",
            json!({
                "cluster": document["key"],
                "operation": document["asyncOperationId"],
                "status": after.operation.name(),
            }),
        )
        .audit(AuditRow {
            actor: lease.owner.clone(),
            action: format!("{state} ended {}", after.operation),
            target: text(document, "/key").to_owned(),
            detail: error.map(|error| error.to_string()).unwrap_or_default(),
        })
}

/// Adds the end of the operation and of its timeline.
fn end_operation(
    mut commit: Commit,
    facts: &EndFacts<'_>,
    after: &AfterWork,
    error: Option<&CloudError>,
    snapshot: Option<Value>,
) -> Commit {
    let partition = facts.lease.key.partition.name();
    if let Some(operation) = facts.operation {
        let mut body = operation.body.clone();
        let inner = &mut body["asyncOperation"];
        inner["status"] = after.operation.name().into();
        inner["endTime"] = facts.now.clone().into();
        if let Some(error) = error {
            inner["error"] = json!(error);
        }
        if let Some(snapshot) = snapshot {
            body["openShiftCluster"] = snapshot;
        }
        let key = subscription_document(OPERATIONS, partition, &operation.key.id);
        commit = commit.with(expiring(key, operation, body));
    }
    if let Some(timeline) = facts.timeline {
        let key = subscription_document(TIMELINES, partition, &timeline.key.id);
        commit = commit.with(expiring(key, timeline, timeline.body.clone()));
    }
    commit
}

fn expiring(key: neap_store::DocumentKey, read: &Document, body: Value) -> Write {
    Write::Put {
        key,
        precondition: Precondition::Etag(read.etag),
        body,
        unique: Vec::new(),
        ttl: Some(OPERATION_TTL),
        queue: QueueChange::Keep,
    }
}

/// The cluster document after work.
fn cluster_after(document: &Value, after: &AfterWork) -> Value {
    let mut ended = document.clone();
    let properties = &mut ended["openShiftCluster"]["properties"];
    properties["provisioningState"] = after.state.name().into();
    properties["failedProvisioningState"] = after.failed.map_or("", |it| it.name()).into();
    properties["lastProvisioningState"] = "".into();
    if let Some(properties) = properties.as_object_mut() {
        properties.remove("maintenanceTask");
    }
    remove(&mut ended, "/correlationData");
    // The status of the operation is final for clients from here on.
    ended["asyncOperationId"] = "".into();
    ended
}
