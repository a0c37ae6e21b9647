//! Status conditions, by the rules of kstatus.
//!
//! Each condition carries the generation of the spec that it describes, so that `kubectl wait` and
//! other tools do not mistake the status of an older spec for the current one.
//!
//! Invariant: the transition time of a condition changes only with its status. Otherwise every status
//! write would be a change that enqueues its own object.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// The value in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition as a decision sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// The type, such as `Ready`.
    pub type_: &'static str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The reason: one CamelCase word, part of the API.
    pub reason: &'static str,
    /// The message: a sentence for people.
    pub message: String,
}

impl ConditionUpdate {
    /// A condition with these fields.
    pub fn new(
        type_: &'static str,
        status: ConditionStatus,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            type_,
            status,
            reason,
            message,
        }
    }
}

/// The summary of an object's state, from which the conditions `Ready`, `Reconciling` and `Stalled`
/// are derived, so that the three never contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The object is in its desired state.
    Ready(&'static str, String),
    /// The controller is bringing it there.
    Reconciling(&'static str, String),
    /// It will not get there until a user changes something.
    Stalled(&'static str, String),
}

impl Readiness {
    /// The three conditions, `Ready` first.
    pub fn condition_updates(&self) -> [ConditionUpdate; 3] {
        use ConditionStatus::{False, True};
        let (Self::Ready(reason, message)
        | Self::Reconciling(reason, message)
        | Self::Stalled(reason, message)) = self;
        let status = |holds: bool| if holds { True } else { False };
        let update =
            |type_, holds| ConditionUpdate::new(type_, status(holds), reason, message.clone());
        [
            update("Ready", matches!(self, Self::Ready(..))),
            update("Reconciling", matches!(self, Self::Reconciling(..))),
            update("Stalled", matches!(self, Self::Stalled(..))),
        ]
    }
}

/// The `old` conditions with `condition_updates` applied, for the spec of this generation. Conditions
/// of other types stay as they are.
pub fn updated_conditions(
    old: &[Condition],
    condition_updates: &[ConditionUpdate],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = old.to_vec();
    for update in condition_updates {
        let status = update.status.as_str();
        let index = conditions
            .iter()
            .position(|condition| condition.type_ == update.type_);
        let previous = index.map(|index| &conditions[index]);
        let unchanged = previous.filter(|previous| previous.status == status);
        let condition = Condition {
            type_: update.type_.to_owned(),
            status: status.to_owned(),
            reason: update.reason.to_owned(),
            message: update.message.clone(),
            observed_generation: generation,
            last_transition_time: unchanged.map_or(Time(whole_seconds(now)), |previous| {
                previous.last_transition_time.clone()
            }),
        };
        match index {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

/// The API stores whole seconds, and what it returns must equal what was written.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
