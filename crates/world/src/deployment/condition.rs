//! The conditions of a Deployment.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DeploymentCondition;

use crate::workload::api_time;

pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const AVAILABLE: &str = "Available";
pub(super) const FAILURE: &str = "ReplicaFailure";

/// The reasons of `Progressing`.
pub(super) mod reason {
    pub(crate) const CREATED: &str = "NewReplicaSetCreated";
    pub(crate) const FOUND: &str = "FoundNewReplicaSet";
    pub(crate) const UPDATED: &str = "ReplicaSetUpdated";
    pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
    pub(crate) const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    pub(crate) const PAUSED: &str = "DeploymentPaused";
    pub(crate) const RESUMED: &str = "DeploymentResumed";
}

/// The conditions, ordered by their last update.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    pub(super) list: Vec<DeploymentCondition>,
    pub(super) now: Timestamp,
}

impl Conditions {
    pub(super) fn get(&self, name: &str) -> Option<&DeploymentCondition> {
        self.list.iter().find(|condition| condition.type_ == name)
    }

    /// The reason of `Progressing`, if the condition is set.
    pub(super) fn progress(&self) -> Option<&str> {
        self.get(PROGRESSING)?.reason.as_deref()
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.list.retain(|condition| condition.type_ != name);
    }

    /// Sets the condition unless it already has this status and reason, whatever its message.
    pub(super) fn set(&mut self, name: &str, status: &str, reason: &str, message: String) {
        let same = |former: &DeploymentCondition| {
            former.status == status && former.reason.as_deref() == Some(reason)
        };
        if !self.get(name).is_some_and(same) {
            self.set_now(name, status, reason, message);
        }
    }

    /// Sets the condition with the current time as its update time, even if it is unchanged.
    pub(super) fn set_now(&mut self, name: &str, status: &str, reason: &str, message: String) {
        let now = Some(api_time(self.now));
        let former = self.get(name).filter(|former| former.status == status);
        let since = former.and_then(|former| former.last_transition_time.clone());
        self.remove(name);
        self.list.push(DeploymentCondition {
            type_: name.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_transition_time: since.or_else(|| now.clone()),
            last_update_time: now,
        });
    }
}
