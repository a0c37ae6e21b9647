//! The conditions of an object.

use jiff::Timestamp;
use serde_json::Value;

/// A condition, read leniently: kinds differ in which fields theirs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConditionSummary {
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Option<Timestamp>,
}

/// What a condition means for the health of the object, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// It will not recover without a change.
    Stalled,
    /// It is not in its desired state.
    Unhealthy,
    /// Work is in progress.
    Progressing,
    /// It is in its desired state.
    Healthy,
}

impl ConditionSummary {
    /// All conditions of `object`, the most severe first.
    pub(super) fn of(object: &Value) -> Vec<Self> {
        let conditions = object["status"]["conditions"].as_array();
        let mut all: Vec<_> = conditions.into_iter().flatten().map(Self::read).collect();
        all.sort_by_key(Self::severity);
        all
    }

    fn read(condition: &Value) -> Self {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Self {
            type_: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            since: text("lastTransitionTime").parse().ok(),
        }
    }

    pub(super) fn severity(&self) -> Severity {
        let holds = self.status == "True";
        match self.type_.as_str() {
            "Stalled" | "Failed" if holds => Severity::Stalled,
            // The progress deadline is exceeded: the rollout has stopped.
            "Progressing" if self.status == "False" => Severity::Stalled,
            "Reconciling" if holds => Severity::Progressing,
            kind if is_neutral(kind) => Severity::Healthy,
            kind if holds == is_negative(kind) => Severity::Unhealthy,
            _ => Severity::Healthy,
        }
    }
}

/// Types of conditions that are neither good nor bad.
fn is_neutral(kind: &str) -> bool {
    [
        "Reconciling",
        "Progressing",
        "Suspended",
        "DisruptionTarget",
    ]
    .contains(&kind)
}

/// Types of conditions that report a problem when they hold.
fn is_negative(kind: &str) -> bool {
    let types = [
        "Stalled",
        "Failed",
        "FailureTarget",
        "Degraded",
        "ReplicaFailure",
    ];
    let suffixes = ["Pressure", "Unavailable", "Failure", "Terminating"];
    types.contains(&kind) || suffixes.iter().any(|suffix| kind.ends_with(suffix))
}
