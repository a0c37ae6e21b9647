//! From a decision to one transaction: cluster, operation, outbox and audit.

use aws_lc_rs::{digest, rand};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use neap_kit::http::RequestId;
use neap_store::{AuditRow, Commit, Document, Precondition, QueueChange, Scope, Write};
use serde_json::{Value, json};

use super::{
    Frontend,
    middleware::{self, Head},
};
use crate::{
    cloud_error::CloudError,
    cluster::{self, Decision, operation_path},
    documents::{OPERATIONS, QUEUE, cluster_key, subscription_document, text, unique_keys},
    http::answer::store_error,
    resource_id::ClusterId,
};

/// What happens to a decision.
pub(super) enum Committed {
    /// It is done.
    Done,
    /// The cluster or its subscription was changed since it was read: decide again.
    Again,
}

/// A decision, and what it was made from.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) id: &'a ClusterId,
    /// The cluster as it was read.
    pub(super) cluster: Option<&'a Document>,
    /// The subscription as it was read, if the decision holds only in that version.
    pub(super) subscription: Option<&'a Document>,
    pub(super) decision: &'a Decision,
    /// Who asked for it.
    pub(super) actor: &'a str,
    pub(super) action: &'a str,
}

impl Frontend {
    /// Reads a document of a subscription.
    pub(super) async fn read(
        &self,
        collection: &'static str,
        subscription: &str,
        id: &str,
    ) -> Result<Option<Document>, CloudError> {
        let key = subscription_document(collection, subscription, id);
        let found = self.store.get(Scope::Partition(&key.partition), &key).await;
        found.map_err(|error| store_error(&error))
    }

    /// Reads a cluster.
    pub(super) async fn read_cluster(
        &self,
        id: &ClusterId,
    ) -> Result<Option<Document>, CloudError> {
        let key = cluster_key(id);
        let found = self.store.get(Scope::Partition(&key.partition), &key).await;
        found.map_err(|error| store_error(&error))
    }

    /// What is chosen and noted for one request.
    pub(super) fn request(
        &self,
        request: &Head,
        is_admin: bool,
        body: Option<&Value>,
    ) -> cluster::Request {
        let mut bucket = [0];
        // Without randomness all clusters share a bucket, which only costs balance.
        let _ = rand::fill(&mut bucket);
        let correlation = middleware::correlation(request, self.clock, is_admin);
        let client_id = text(&correlation, "/clientRequestId");
        let said = format!(
            "{}\n{}\n{client_id}\n{}",
            request.method(),
            request.uri().path(),
            body.unwrap_or(&Value::Null)
        );
        let digest = digest::digest(&digest::SHA256, said.as_bytes());
        let digest = STANDARD.encode(digest);
        cluster::Request {
            now: self.clock.now().to_string(),
            operation_id: RequestId::random().0,
            document_id: RequestId::random().0,
            bucket: bucket[0],
            // A request without a client request id is never the same as another.
            digest: if client_id.is_empty() {
                String::new()
            } else {
                digest
            },
            correlation,
        }
    }

    /// The operation that the same request has started when it was sent before, if it was the last one.
    pub(super) async fn same_operation(
        &self,
        id: &ClusterId,
        existing: &Value,
        request: &cluster::Request,
    ) -> Result<Option<String>, CloudError> {
        let running = text(existing, "/asyncOperationId");
        let last = match running {
            "" => text(existing, "/lastOperationId"),
            running => running,
        };
        if last.is_empty() || request.digest.is_empty() {
            return Ok(None);
        }
        let found = self.read(OPERATIONS, &id.subscription, last).await?;
        let same = found.is_some_and(|it| it.body["requestDigest"] == *request.digest);
        Ok(same.then(|| last.to_owned()))
    }

    /// Does what was decided, or in a dry run finds out whether it could be done.
    pub(super) async fn act(
        &self,
        change: Change<'_>,
        is_dry: bool,
    ) -> Result<Committed, CloudError> {
        if is_dry {
            self.rehearse(change).await
        } else {
            self.commit(change).await
        }
    }

    /// Does what was decided, in one transaction.
    async fn commit(&self, change: Change<'_>) -> Result<Committed, CloudError> {
        let commit = transaction(change);
        committed(self.store.commit(commit).await.map(drop), change.decision)
    }

    /// Whether [`Self::commit`] would do what was decided, with the same refusals. Changes nothing.
    pub(super) async fn rehearse(&self, change: Change<'_>) -> Result<Committed, CloudError> {
        let commit = transaction(change);
        committed(self.store.rehearse(commit).await, change.decision)
    }

    /// The URL of the status of an operation.
    pub(super) fn operation_link(
        &self,
        request: &Head,
        subscription: &str,
        operation: &str,
        api: &str,
    ) -> String {
        let path = operation_path(subscription, &self.region.location, operation);
        middleware::link(request, &path, &format!("api-version={api}"))
    }
}

/// The writes of a decision. Pure.
fn transaction(change: Change<'_>) -> Commit {
    let Change {
        id,
        decision,
        action,
        ..
    } = change;
    let etag = |read: &Document| Precondition::Etag(read.etag);
    let precondition = change.cluster.map_or(Precondition::Absent, etag);
    let queue = if decision.queued {
        QueueChange::Queue {
            name: QUEUE,
            delay: 0,
            reset: true,
        }
    } else {
        QueueChange::Keep
    };
    let operation_id = text(&decision.operation, "/id");
    let ttl = (!decision.queued).then_some(crate::documents::OPERATION_TTL);
    let correlation = &decision.document["correlationData"];
    // The deletion of a subscription looks for its clusters once: none may appear behind it.
    let checks = change.subscription.map(|read| Write::Check {
        key: read.key.clone(),
        etag: read.etag,
    });
    checks
        .into_iter()
        .fold(Commit::default(), Commit::with)
        .with(Write::Put {
            key: cluster_key(id),
            precondition,
            body: decision.document.clone(),
            unique: unique_keys(&decision.document),
            ttl: None,
            queue,
        })
        .with(Write::Put {
            key: subscription_document(OPERATIONS, &id.subscription, operation_id),
            precondition: Precondition::Absent,
            body: decision.operation.clone(),
            unique: Vec::new(),
            ttl,
            queue: QueueChange::Keep,
        })
        .announce(
            "cluster-operation",
            json!({"cluster": id.to_string(), "operation": operation_id, "action": action}),
        )
        .audit(AuditRow {
            actor: change.actor.to_owned(),
            action: action.to_owned(),
            target: id.to_string(),
            detail: format!(
                "operation {operation_id}, request {}, correlation {}",
                text(correlation, "/requestId"),
                text(correlation, "/correlationId"),
            ),
        })
}

/// What the answer of the store means for a decision.
fn committed(
    answer: Result<(), neap_store::Error>,
    decision: &Decision,
) -> Result<Committed, CloudError> {
    match answer {
        Ok(()) => Ok(Committed::Done),
        Err(
            neap_store::Error::Conflict(_)
            | neap_store::Error::Exists(_)
            | neap_store::Error::Missing(_),
        ) => Ok(Committed::Again),
        Err(neap_store::Error::Unique { name, holder }) => Err(duplicate(&name, &holder, decision)),
        Err(error) => Err(store_error(&error)),
    }
}

fn duplicate(name: &str, holder: &str, decision: &Decision) -> CloudError {
    if name == "clientIdKey" {
        let client = text(&decision.document, "/clientIdKey");
        let message = format!(
            "The provided client ID '{client}' is already in use by the cluster '{holder}'."
        );
        let target = "properties.servicePrincipalProfile.clientId";
        return CloudError::bad_request("DuplicateClientID", target, message);
    }
    let group = text(&decision.document, "/clusterResourceGroupIdKey");
    let message =
        format!("The provided resource group '{group}' already contains the cluster '{holder}'.");
    let target = "properties.clusterProfile.resourceGroupId";
    CloudError::bad_request("DuplicateResourceGroup", target, message)
}
