//! DELETE of a cluster.

use serde_json::Value;

use super::{
    Decision, Request, check_subscription_state, operation_document, operation_path,
    put::begin_work, states,
};
use crate::{
    cloud_error::CloudError,
    documents::text,
    resource_id::ClusterId,
    state::{ProvisioningState, Wish, may},
};

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct DeleteFacts<'a> {
    /// The id in the path.
    pub id: &'a ClusterId,
    /// The document of the subscription.
    pub subscription: Option<&'a Value>,
    /// The document of the cluster.
    pub existing: &'a Value,
    /// The location of the provider.
    pub location: &'a str,
    /// Everything else about the request.
    pub request: &'a Request,
}

/// What a DELETE leads to. A deletion never depends on how far the creation came.
pub fn delete(facts: &DeleteFacts<'_>) -> Result<Decision, CloudError> {
    let allowed = ["Registered", "Warned", "Suspended"];
    check_subscription_state(facts.subscription, &allowed)?;
    let (state, failed) = states(facts.existing);
    let running = text(facts.existing, "/asyncOperationId");
    let (subscription, location) = (&facts.id.subscription, facts.location);
    let path = operation_path(subscription, location, running);
    may(Wish::Delete, state, failed, &path)?;
    Ok(queue_deletion(
        facts.existing,
        subscription,
        location,
        facts.request,
    ))
}

/// The deletion of a cluster at rest.
pub fn queue_deletion(
    existing: &Value,
    subscription: &str,
    location: &str,
    request: &Request,
) -> Decision {
    let mut document = existing.clone();
    document["correlationData"] = request.correlation.clone();
    let state = ProvisioningState::Deleting;
    begin_work(&mut document, state, false, request);
    let operation = operation_document(&document, request, state, subscription, location);
    Decision {
        document,
        operation,
        created: false,
        queued: true,
    }
}
