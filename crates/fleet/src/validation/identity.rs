//! Who the cluster is in the cloud: a service principal or workload identities.

use std::collections::HashSet;

use serde_json::Value;

use super::{Checked, Input};
use crate::{
    cloud_error::CloudError,
    resource_id::{is_user_assigned_identity, is_uuid},
};

const SERVICE_PRINCIPAL: &str = "properties.servicePrincipalProfile";
const PLATFORM: &str = "properties.platformWorkloadIdentityProfile";

/// Exactly one of the two ways, and what belongs to it.
pub(super) fn identities(input: &Input<'_>) -> Checked {
    let has_principal = input.has("servicePrincipalProfile");
    if !input.api.identities {
        if !has_principal {
            let message = "The field 'properties.servicePrincipalProfile' is required: a cluster with workload identities needs API version 2024-08-12-preview or later.";
            return Err(CloudError::invalid(SERVICE_PRINCIPAL, message));
        }
        return Ok(());
    }
    let has_platform = input.has("platformWorkloadIdentityProfile");
    let identity = &input.cluster["identity"];
    let assigned = identity["userAssignedIdentities"].as_object();
    match (has_principal, has_platform) {
        (false, false) => {
            let message = "Must provide either an identity or service principal credentials.";
            Err(CloudError::invalid(
                "properties.servicePrincipalProfile",
                message,
            ))
        }
        (true, true) => {
            let message =
                "Cannot use identities and service principal credentials at the same time.";
            Err(CloudError::invalid(SERVICE_PRINCIPAL, message))
        }
        (true, false) if assigned.is_some_and(|it| !it.is_empty()) => {
            let message = "Cluster identity and platform workload identities require each other.";
            Err(CloudError::invalid("identity", message))
        }
        (true, false) => Ok(()),
        (false, true) if assigned.is_none_or(|it| it.len() != 1) => {
            let message = "The provided cluster identity is invalid; there should be exactly one.";
            Err(CloudError::bad_request(
                "InvalidClusterMSICount",
                "identity",
                message,
            ))
        }
        (false, true) => {
            let identities = input
                .properties()
                .pointer("/platformWorkloadIdentityProfile/platformWorkloadIdentities");
            if identities
                .and_then(Value::as_object)
                .is_none_or(serde_json::Map::is_empty)
            {
                let message = "The set of platform workload identities cannot be empty.";
                return Err(CloudError::invalid(
                    &format!("{PLATFORM}.platformWorkloadIdentities"),
                    message,
                ));
            }
            Ok(())
        }
    }
}

pub(super) fn service_principal(input: &Input<'_>) -> Checked {
    if !input.has("servicePrincipalProfile") || input.api.admin {
        return Ok(());
    }
    if !is_uuid(input.text("/servicePrincipalProfile/clientId")) {
        let target = "properties.servicePrincipalProfile.clientId";
        let message = "The provided client ID is invalid: it must be a UUID.";
        return Err(CloudError::invalid(target, message));
    }
    let secret = input
        .properties()
        .pointer("/servicePrincipalProfile/clientSecret");
    // A sealed secret is one that was validated when it was sent.
    if secret.is_none_or(|secret| secret.as_str().is_some_and(str::is_empty)) {
        let target = "properties.servicePrincipalProfile.clientSecret";
        let message = "The provided client secret is invalid: it is empty.";
        return Err(CloudError::invalid(target, message));
    }
    Ok(())
}

pub(super) fn platform_identities(input: &Input<'_>) -> Checked {
    if !input.has("platformWorkloadIdentityProfile") {
        return Ok(());
    }
    let target = format!("{PLATFORM}.platformWorkloadIdentities");
    let identities = input
        .properties()
        .pointer("/platformWorkloadIdentityProfile/platformWorkloadIdentities");
    let mut seen = HashSet::new();
    for (operator, identity) in identities.and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{target}['{operator}']");
        let id = identity["resourceId"].as_str().unwrap_or_default();
        if operator.is_empty() {
            let message = "The name of an operator is empty.";
            return Err(CloudError::invalid(&target, message));
        }
        if !is_user_assigned_identity(id) {
            let message =
                format!("The resource ID '{id}' is not that of a user-assigned identity.");
            return Err(CloudError::invalid(&format!("{at}.resourceId"), message));
        }
        if !seen.insert(id.to_ascii_lowercase()) {
            let message = format!("The identity '{id}' is used by more than one operator.");
            return Err(CloudError::invalid(&target, message));
        }
    }
    let version = input.text("/platformWorkloadIdentityProfile/upgradeableTo");
    let is_version = version.split('.').count() == 3
        && version
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit()));
    if !version.is_empty() && !is_version {
        let message = format!("The version '{version}' is not of the form x.y.z.");
        return Err(CloudError::invalid(
            &format!("{PLATFORM}.upgradeableTo"),
            message,
        ));
    }
    Ok(())
}
