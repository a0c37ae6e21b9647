//! What a request does to a cluster: pure decisions from facts to documents.

mod admin;
mod delete;
mod put;
mod retry;

use serde_json::{Value, json};

pub use self::{
    admin::apply_maintenance,
    delete::{DeleteFacts, delete, queue_deletion},
    put::{PutFacts, put},
    retry::retried,
};
use crate::{
    api::{ApiVersion, project},
    cloud_error::CloudError,
    documents::text,
    state::ProvisioningState,
};

/// What a request leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The cluster document, as it shall be.
    pub document: Value,
    /// The document of the operation that does it.
    pub operation: Value,
    /// Whether the cluster is new.
    pub created: bool,
    /// Whether work is queued for it.
    pub queued: bool,
}

/// What a client said beside the body, and what was chosen at random for this request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The current time, RFC 3339.
    pub now: String,
    /// A new UUID for the operation.
    pub operation_id: String,
    /// A new UUID for the document, if it is created.
    pub document_id: String,
    /// A bucket from 0 to 255, if it is created.
    pub bucket: u8,
    /// Correlation data, as stored.
    pub correlation: Value,
    /// A digest of method, path and body: the same request has the same.
    pub digest: String,
}

/// The subscription of a cluster.
pub fn check_subscription_state(
    subscription: Option<&Value>,
    allowed: &[&str],
) -> Result<(), CloudError> {
    let state = subscription.map(|it| text(it, "/subscription/state"));
    match state {
        Some(state) if allowed.contains(&state) => Ok(()),
        None | Some("Unregistered") => Err(CloudError::bad_request(
            "InvalidSubscriptionState",
            "",
            "Request is not allowed in unregistered subscription.",
        )),
        Some(state) => Err(CloudError::bad_request(
            "InvalidSubscriptionState",
            "",
            format!("Request is not allowed in subscription in state '{state}'."),
        )),
    }
}

/// The states in a cluster document.
pub fn states(document: &Value) -> (ProvisioningState, Option<ProvisioningState>) {
    let state = |name: &str| {
        let pointer = format!("/openShiftCluster/properties/{name}");
        ProvisioningState::parse(text(document, &pointer))
    };
    (
        state("provisioningState").unwrap_or(ProvisioningState::Failed),
        state("failedProvisioningState"),
    )
}

/// The cluster of a document as clients of a version see it, without secrets.
pub fn shown(api: &ApiVersion, document: &Value) -> Value {
    let cluster = &document["openShiftCluster"];
    let mut shown = project(api.fields, cluster, false);
    if !api.admin {
        // Workers are counted by the enrichment of a GET; a stored count would be an old one.
        if let Some(properties) = shown["properties"].as_object_mut() {
            properties.remove("workerProfilesStatus");
        }
    }
    shown
}

/// The path of the status of an operation.
pub fn operation_path(subscription: &str, location: &str, operation: &str) -> String {
    format!(
        "/subscriptions/{subscription}/providers/microsoft.redhatopenshift/locations/{location}/operationsstatus/{operation}"
    )
}

/// A new document of an operation.
fn operation_document(
    document: &Value,
    request: &Request,
    state: ProvisioningState,
    subscription: &str,
    location: &str,
) -> Value {
    let Request {
        now, operation_id, ..
    } = request;
    json!({
        "id": operation_id,
        "openShiftClusterKey": document["key"],
        "asyncOperation": {
            "id": operation_path(subscription, location, operation_id),
            "name": operation_id,
            "initialStatus": state.name(),
            "status": state.name(),
            "startTime": now,
        },
        "requestDigest": request.digest,
    })
}
