//! What Hive does next about a ClusterDeployment. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ClusterDeployment, HiveOptions};

/// The finalizer that keeps a ClusterDeployment until its cluster is gone.
pub(super) const FINALIZER: &str = "hive.openshift.io/deprovision";

/// What Hive does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Nothing: it is gone, or is told to hang.
    Nothing,
    /// It takes the deployment over.
    AddFinalizer,
    /// It reports that it will not be installed, for this reason.
    Refuse(String),
    /// It starts the cluster and fills it.
    Install,
    /// The cluster is installed and its parts settle until then.
    Settle(Timestamp),
    /// The cluster runs; after a restart it is started again.
    Keep,
    /// It removes the cluster, and its finalizer.
    Deprovision,
}

pub(super) fn decide(
    deployment: &ClusterDeployment,
    options: &HiveOptions,
    settled: bool,
) -> NextAction {
    let finalizers = deployment.metadata.finalizers.as_deref();
    let is_ours = finalizers.is_some_and(|all| all.iter().any(|it| it == FINALIZER));
    if deployment.metadata.deletion_timestamp.is_some() {
        return if is_ours {
            NextAction::Deprovision
        } else {
            NextAction::Nothing
        };
    }
    if !is_ours {
        return NextAction::AddFinalizer;
    }
    let name = &deployment.spec.cluster_name;
    if deployment.spec.installed {
        let status = deployment.status.as_ref();
        let installed = status.and_then(|it| it.installed_timestamp.parse::<Timestamp>().ok());
        return match installed {
            Some(installed) if !settled => {
                NextAction::Settle(installed.checked_add(options.settle).unwrap_or(installed))
            }
            Some(_) => NextAction::Keep,
            // Something else has installed it, and runs it.
            None => NextAction::Nothing,
        };
    }
    if let Some((_, reason)) = options.refuse.iter().find(|(refused, _)| refused == name) {
        return NextAction::Refuse(reason.clone());
    }
    if options.hang.contains(name) {
        return NextAction::Nothing;
    }
    NextAction::Install
}

/// A condition as Hive writes it.
pub(super) fn condition(
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now.to_string(),
        "lastProbeTime": now.to_string(),
    })
}

/// How long until `moment`.
pub(super) fn until(now: Timestamp, moment: Timestamp) -> Duration {
    moment.duration_since(now).try_into().unwrap_or_default()
}
