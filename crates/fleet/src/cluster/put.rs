//! PUT and PATCH of a cluster.

use serde_json::{Value, json};

use super::{
    Decision, Request, admin::apply_maintenance, check_subscription_state, operation_document,
    operation_path, states,
};
use crate::{
    api::{Absent, ApiVersion, merge, overlay, project},
    catalogue::Catalogue,
    cloud_error::CloudError,
    documents::{set, set_defaults, set_unique_keys, text, uses_identities},
    resource_id::{CLUSTER_TYPE_NAME, ClusterId},
    state::{ProvisioningState, Wish, may},
    validation::{Input, Region, validate},
};

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct PutFacts<'a> {
    /// The version that the client speaks.
    pub api: &'a ApiVersion,
    /// Whether it is a PATCH.
    pub patch: bool,
    /// The id in the path.
    pub id: &'a ClusterId,
    /// The path as the client wrote it.
    pub path: &'a str,
    /// The body.
    pub body: &'a Value,
    /// The document of the subscription.
    pub subscription: Option<&'a Value>,
    /// The document of the cluster, if it exists.
    pub existing: Option<&'a Value>,
    /// The versions that can be installed.
    pub catalogue: &'a Catalogue,
    /// The provider.
    pub region: &'a Region,
    /// Who changes it, from the header of ARM.
    pub system_data: &'a Value,
    /// The build of this program.
    pub commit: &'a str,
    /// Everything else about the request.
    pub request: &'a Request,
}

/// What a PUT or PATCH leads to.
pub fn put(facts: &PutFacts<'_>) -> Result<Decision, CloudError> {
    check_subscription_state(facts.subscription, &["Registered"])?;
    let mut document = match facts.existing {
        Some(document) => {
            let (state, failed) = states(document);
            let operation = text(document, "/asyncOperationId");
            let path = operation_path(&facts.id.subscription, &facts.region.location, operation);
            may(Wish::Update, state, failed, &path)?;
            document.clone()
        }
        None if facts.api.admin => {
            let message = "Admin API does not allow cluster creation.";
            return Err(CloudError::bad_request("RequestNotAllowed", "", message));
        }
        None => new_document(facts),
    };
    let merged = merged_and_valid(facts, &document)?;
    let api = facts.api;
    let old = document["openShiftCluster"].clone();
    overlay(api.fields, &mut document["openShiftCluster"], &merged);
    restore(facts, &old, &mut document["openShiftCluster"]);
    if uses_identities(&document["openShiftCluster"]) {
        // Installing with workload identities needs the cloud's identity service.
        let message = "Clusters with platform workload identities are not supported by this version of the provider: use a service principal.";
        return Err(CloudError::bad_request(
            "WorkloadIdentityNotSupported",
            "properties.platformWorkloadIdentityProfile",
            message,
        ));
    }
    document["correlationData"] = facts.request.correlation.clone();
    set_defaults(&mut document["openShiftCluster"]);
    set_unique_keys(&mut document);
    let created = facts.existing.is_none();
    let state = if api.admin {
        apply_maintenance(&mut document["openShiftCluster"])?
    } else if created {
        Some(ProvisioningState::Creating)
    } else {
        Some(ProvisioningState::Updating)
    };
    if let Some(state) = state {
        begin_work(&mut document, state, created, facts.request);
    }
    let shown = state.unwrap_or(ProvisioningState::Succeeded);
    let location = &facts.region.location;
    let subscription = &facts.id.subscription;
    let mut operation = operation_document(&document, facts.request, shown, subscription, location);
    if state.is_none() {
        operation["asyncOperation"]["endTime"] = facts.request.now.clone().into();
    }
    Ok(Decision {
        document,
        operation,
        created,
        queued: state.is_some(),
    })
}

/// Records that work begins.
pub(super) fn begin_work(
    document: &mut Value,
    state: ProvisioningState,
    created: bool,
    request: &Request,
) {
    let last = states(document).0;
    let properties = &mut document["openShiftCluster"]["properties"];
    if !created {
        properties["lastProvisioningState"] = last.name().into();
    }
    properties["provisioningState"] = state.name().into();
    document["asyncOperationId"] = request.operation_id.clone().into();
    // It stays when the work has ended: a client whose answer was lost may send the request again later.
    document["lastOperationId"] = request.operation_id.clone().into();
}

fn new_document(facts: &PutFacts<'_>) -> Value {
    let Request {
        document_id,
        bucket,
        now,
        ..
    } = facts.request;
    // The name keeps the case in which the client wrote it.
    let name = facts.path.trim_end_matches('/').rsplit('/').next();
    json!({
        "id": document_id,
        "key": facts.id.to_string(),
        "partitionKey": facts.id.subscription,
        "bucket": bucket,
        "openShiftCluster": {
            "id": facts.path,
            "name": name.unwrap_or_default(),
            "type": CLUSTER_TYPE_NAME,
            "properties": {
                "architectureVersion": 1,
                "provisioningState": "Succeeded",
                "createdAt": now,
                "createdBy": facts.commit,
                "provisionedBy": facts.commit,
                "featureProfile": {"gatewayEnabled": true},
            },
        },
    })
}

/// The cluster as the client wants it, in the form of its version, validated.
fn merged_and_valid(facts: &PutFacts<'_>, document: &Value) -> Result<Value, CloudError> {
    let fields = facts.api.fields;
    let current = project(fields, &document["openShiftCluster"], true);
    let absent = if facts.patch {
        Absent::Keep
    } else {
        Absent::Clear
    };
    let mut merged = merge(fields, &current, facts.body, absent).map_err(|mismatch| {
        let message = format!(
            "The request content was invalid and could not be deserialized: {}: {}.",
            mismatch.path, mismatch.why
        );
        CloudError::bad_request("InvalidRequestContent", &mismatch.path, message)
    })?;
    let is_create = facts.existing.is_none();
    let version = "/properties/clusterProfile/version";
    if is_create && text(&merged, version).is_empty() {
        let default = facts.catalogue.default_version().ok_or_else(|| {
            CloudError::new(
                503,
                "NoDefaultVersion",
                "properties.clusterProfile.version",
                "The request names no OpenShift version and the provider has no default: name one, or apply versions with neap fleet versions apply.",
            )
        })?;
        set(&mut merged, version, default.into());
    }
    validate(&Input {
        api: facts.api,
        id: facts.id,
        cluster: &merged,
        current: (!is_create).then_some(&current),
        region: facts.region,
        first_architecture: text_is_first(document),
    })?;
    if is_create {
        facts.catalogue.check_version(text(&merged, version))?;
    }
    Ok(merged)
}

fn text_is_first(document: &Value) -> bool {
    let version = document.pointer("/openShiftCluster/properties/architectureVersion");
    version.and_then(Value::as_i64).unwrap_or_default() == 0
}

/// Id, name and type stay as they were written first, and the header says who changes the cluster.
fn restore(facts: &PutFacts<'_>, old: &Value, cluster: &mut Value) {
    for name in ["id", "name", "type"] {
        cluster[name] = old[name].clone();
    }
    if !cluster["systemData"].is_object() {
        cluster["systemData"] = json!({});
    }
    let known = [
        "createdBy",
        "createdByType",
        "createdAt",
        "lastModifiedBy",
        "lastModifiedByType",
        "lastModifiedAt",
    ];
    for name in known {
        let value = &facts.system_data[name];
        if value.is_string() {
            cluster["systemData"][name] = value.clone();
        }
    }
    let group = "/properties/clusterProfile/resourceGroupId";
    if facts.existing.is_none() {
        let lower = text(cluster, group).to_lowercase();
        set(cluster, group, lower.into());
    }
}
