//! The phase of a release: what its conditions mean in one word.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{ReleasePayload, conditions};

/// The phase of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Its image is being created.
    Pending,
    /// Its image exists and is being verified.
    Ready,
    /// It may be used.
    Accepted,
    /// It may not be used.
    Rejected,
    /// There is no image.
    Failed,
}

impl Phase {
    /// The phase that these conditions mean. Acceptance beats failure, and failure beats rejection, in
    /// whatever order the conditions are stored.
    pub fn of(all: &[Condition]) -> Self {
        let holds = |type_: &str| {
            all.iter()
                .any(|it| it.type_ == type_ && it.status == "True")
        };
        [
            (conditions::ACCEPTED, Self::Accepted),
            (conditions::FAILED, Self::Failed),
            (conditions::REJECTED, Self::Rejected),
            (conditions::CREATED, Self::Ready),
        ]
        .into_iter()
        .find(|(type_, _)| holds(type_))
        .map_or(Self::Pending, |(_, phase)| phase)
    }

    /// The phase of a payload.
    pub fn of_payload(payload: &ReleasePayload) -> Self {
        let status = payload.status.as_ref();
        status.map_or(Self::Pending, |status| Self::of(&status.conditions))
    }

    /// What a release cannot be used for because it is in this phase; none if it can be used.
    pub fn blocks(self) -> Option<&'static str> {
        match self {
            Self::Accepted => None,
            Self::Pending | Self::Ready => {
                Some("until it is accepted, it is not published and no upgrade test starts from it")
            }
            Self::Rejected | Self::Failed => Some(
                "no published tag moves to it, no upgrade test starts from it, and its images are not released again \
                 before they change",
            ),
        }
    }

    /// The phase of this name, as the annotation of a tag has it.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Pending,
            Self::Ready,
            Self::Accepted,
            Self::Rejected,
            Self::Failed,
        ];
        all.into_iter().find(|phase| phase.as_str() == text)
    }

    /// The name of the phase.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Accepted => "Accepted",
            Self::Rejected => "Rejected",
            Self::Failed => "Failed",
        }
    }

    /// Whether there is a verdict.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Accepted | Self::Rejected | Self::Failed)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: &str) -> Condition {
        let condition = serde_json::json!({
            "type": type_, "status": status, "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(condition).unwrap()
    }

    #[test]
    fn the_phase_does_not_depend_on_the_order_of_conditions() {
        use conditions::{ACCEPTED, CREATED, FAILED, REJECTED};
        for (holding, wanted) in [
            (vec![], Phase::Pending),
            (vec![CREATED], Phase::Ready),
            (vec![CREATED, ACCEPTED], Phase::Accepted),
            (vec![REJECTED, ACCEPTED], Phase::Accepted),
            (vec![REJECTED, FAILED], Phase::Failed),
            (vec![CREATED, REJECTED], Phase::Rejected),
        ] {
            let mut all: Vec<_> = holding
                .iter()
                .map(|type_| condition(type_, "True"))
                .collect();
            all.push(condition(ACCEPTED, "Unknown"));
            assert_eq!(Phase::of(&all), wanted, "{holding:?}");
            all.reverse();
            assert_eq!(Phase::of(&all), wanted, "{holding:?} reversed");
        }
        assert_eq!(Phase::parse("Accepted"), Some(Phase::Accepted));
        assert_eq!(Phase::parse("Verified"), None);
    }
}
