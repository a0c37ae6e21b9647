//! What an administrator asks for with a PATCH.

use serde_json::Value;

use crate::{
    cloud_error::CloudError,
    documents::{remove, set, text},
    state::ProvisioningState,
};

/// Tasks that need work on the cluster.
const TASKS: [&str; 6] = [
    "",
    "Everything",
    "OperatorUpdate",
    "CertificatesRenewal",
    "SyncClusterObject",
    "MigrateLoadBalancer",
];
/// Tasks that only say how maintenance stands.
const STATES: [&str; 3] = ["Pending", "None", "CustomerActionNeeded"];

/// Applies the task in `cluster`. Returns the state of the work that it needs, or nothing.
///
/// The maintenance of clusters is not part of this version, so tasks that need work are refused with a
/// code that says so; those that only say how maintenance stands are applied.
pub fn apply_maintenance(cluster: &mut Value) -> Result<Option<ProvisioningState>, CloudError> {
    let task = text(cluster, "/properties/maintenanceTask").to_owned();
    let strategy = text(cluster, "/properties/operatorFlagsMergeStrategy").to_owned();
    if !["", "merge", "reset"].contains(&&*strategy) {
        let target = "properties.operatorFlagsMergeStrategy";
        let message = format!("The strategy '{strategy}' is invalid: it can be merge or reset.");
        return Err(CloudError::invalid(target, message));
    }
    if strategy == "reset" {
        remove(cluster, "/properties/operatorFlags");
    }
    remove(cluster, "/properties/operatorFlagsMergeStrategy");
    if STATES.contains(&&*task) {
        set(cluster, "/properties/maintenanceState", task.into());
        remove(cluster, "/properties/maintenanceTask");
        return Ok(None);
    }
    let target = "properties.maintenanceTask";
    if TASKS.contains(&&*task) {
        let message = format!(
            "The maintenance task '{task}' is not supported by this version of the provider."
        );
        return Err(CloudError::bad_request(
            "MaintenanceNotSupported",
            target,
            message,
        ));
    }
    let message = format!(
        "The maintenance task '{task}' is invalid: it can be one of {TASKS:?} or {STATES:?}."
    );
    Err(CloudError::invalid(target, message))
}
