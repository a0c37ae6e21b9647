//! What is true of a Deployment, in the API's words.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DeploymentCondition;

use crate::workload::moment;

pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const AVAILABLE: &str = "Available";
pub(super) const FAILURE: &str = "ReplicaFailure";

/// The reasons of `Progressing`.
pub(super) mod reason {
    pub(crate) const CREATED: &str = "NewReplicaSetCreated";
    pub(crate) const FOUND: &str = "FoundNewReplicaSet";
    pub(crate) const UPDATED: &str = "ReplicaSetUpdated";
    pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
    pub(crate) const LATE: &str = "ProgressDeadlineExceeded";
    pub(crate) const PAUSED: &str = "DeploymentPaused";
    pub(crate) const RESUMED: &str = "DeploymentResumed";
}

/// The conditions, in the order in which they last changed.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    pub(super) list: Vec<DeploymentCondition>,
    pub(super) now: Timestamp,
}

impl Conditions {
    pub(super) fn get(&self, name: &str) -> Option<&DeploymentCondition> {
        self.list.iter().find(|condition| condition.type_ == name)
    }

    /// The reason of `Progressing`, if that is known.
    pub(super) fn progress(&self) -> Option<&str> {
        self.get(PROGRESSING)?.reason.as_deref()
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.list.retain(|condition| condition.type_ != name);
    }

    /// Says it, unless the same is said already, in whatever words.
    pub(super) fn set(&mut self, name: &str, status: &str, reason: &str, message: String) {
        let same = |former: &DeploymentCondition| {
            former.status == status && former.reason.as_deref() == Some(reason)
        };
        if !self.get(name).is_some_and(same) {
            self.say(name, status, reason, message);
        }
    }

    /// Says it, as of now, even if it is said already.
    pub(super) fn say(&mut self, name: &str, status: &str, reason: &str, message: String) {
        let now = Some(moment(self.now));
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
