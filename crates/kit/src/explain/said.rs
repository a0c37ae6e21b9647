//! What an object says of itself.

use jiff::Timestamp;
use serde_json::Value;

/// A condition, read leniently: kinds differ in which fields theirs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Option<Timestamp>,
}

/// What a condition means for whoever wants the object to be well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// It will not get better by itself.
    Stuck,
    /// It is not as it should be.
    Trouble,
    /// Work is being done.
    Moving,
    /// As it should be.
    Fine,
}

impl Said {
    /// All conditions of `object`, the weightiest first.
    pub(super) fn of(object: &Value) -> Vec<Self> {
        let conditions = object["status"]["conditions"].as_array();
        let mut all: Vec<_> = conditions.into_iter().flatten().map(Self::read).collect();
        all.sort_by_key(Self::weight);
        all
    }

    fn read(condition: &Value) -> Self {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Self {
            kind: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            since: text("lastTransitionTime").parse().ok(),
        }
    }

    pub(super) fn weight(&self) -> Weight {
        let holds = self.status == "True";
        match self.kind.as_str() {
            "Stalled" | "Failed" if holds => Weight::Stuck,
            // Without `ProgressDeadlineExceeded` and the like, no progress is the end of it.
            "Progressing" if self.status == "False" => Weight::Stuck,
            "Reconciling" if holds => Weight::Moving,
            kind if is_neutral(kind) => Weight::Fine,
            kind if holds == is_bad(kind) => Weight::Trouble,
            _ => Weight::Fine,
        }
    }
}

/// Types that say nothing about good or bad.
fn is_neutral(kind: &str) -> bool {
    [
        "Reconciling",
        "Progressing",
        "Suspended",
        "DisruptionTarget",
    ]
    .contains(&kind)
}

/// Types of which one wishes that they do not hold.
fn is_bad(kind: &str) -> bool {
    let bad = [
        "Stalled",
        "Failed",
        "FailureTarget",
        "Degraded",
        "ReplicaFailure",
    ];
    let endings = ["Pressure", "Unavailable", "Failure", "Terminating"];
    bad.contains(&kind) || endings.iter().any(|ending| kind.ends_with(ending))
}
