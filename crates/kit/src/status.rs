//! Conditions that tools understand.
//!
//! An object says how it is by conditions, each with the generation of the spec that it is about,
//! so that whoever changed the spec is not answered with what was true before: `kubectl wait`
//! and everything that follows kstatus go by that.
//!
//! Invariant: the time of a condition moves only when its status does. Otherwise a controller
//! would wake itself with every write.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Whether something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It is.
    True,
    /// It is not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Truth {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What a decision says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it is about, such as `Ready`.
    pub kind: &'static str,
    /// Whether it is so.
    pub truth: Truth,
    /// Why, in one word that is part of the API.
    pub reason: &'static str,
    /// Why, in a sentence for people.
    pub message: String,
}

impl Statement {
    /// A statement about `kind`.
    pub fn new(
        kind: &'static str,
        truth: Truth,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            kind,
            truth,
            reason,
            message,
        }
    }
}

/// How far an object is on its way: the one summary from which `Ready`, `Reconciling` and `Stalled`
/// are made, so that the three never contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is as it should be.
    Ready(&'static str, String),
    /// It is being brought there.
    Reconciling(&'static str, String),
    /// It will not get there until somebody changes something.
    Stalled(&'static str, String),
}

impl Standing {
    /// The three conditions, `Ready` first.
    pub fn statements(&self) -> [Statement; 3] {
        use Truth::{False, True};
        let (Self::Ready(reason, message)
        | Self::Reconciling(reason, message)
        | Self::Stalled(reason, message)) = self;
        let truth = |so: bool| if so { True } else { False };
        let statement = |kind, so| Statement::new(kind, truth(so), reason, message.clone());
        [
            statement("Ready", matches!(self, Self::Ready(..))),
            statement("Reconciling", matches!(self, Self::Reconciling(..))),
            statement("Stalled", matches!(self, Self::Stalled(..))),
        ]
    }
}

/// The conditions that `statements` make of `old` ones, for the spec of this generation. Conditions
/// of others, about which nothing is said, stay.
pub fn conditions(
    old: &[Condition],
    statements: &[Statement],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = old.to_vec();
    for statement in statements {
        let status = statement.truth.as_str();
        let place = conditions
            .iter()
            .position(|condition| condition.type_ == statement.kind);
        let former = place.map(|place| &conditions[place]);
        let since = former.filter(|former| former.status == status);
        let condition = Condition {
            type_: statement.kind.to_owned(),
            status: status.to_owned(),
            reason: statement.reason.to_owned(),
            message: statement.message.clone(),
            observed_generation: generation,
            last_transition_time: since.map_or(Time(whole_seconds(now)), |former| {
                former.last_transition_time.clone()
            }),
        };
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

/// The API keeps no fractions, and what it gives back must equal what was written.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
