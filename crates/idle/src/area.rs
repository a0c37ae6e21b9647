//! What `idle` registers with the program: error codes, the definition of its kind, how an ElastiService is
//! summed up and judged, and the check of operator and resolvers.

mod check;
mod codes;
mod rights;

use jiff::Timestamp;
use kube::CustomResourceExt;
use neap_kit::{
    area::{Area, AreaCheck, AreaKind, ResourceType},
    explain::{Assessment, Verdict},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    account::{Account, State, account, span},
    api::ElastiService,
};

/// How ElastiServices are called and where they are.
pub const ELASTI_SERVICE: ResourceType = ResourceType::namespaced(
    "ElastiService",
    "elasti.truefoundry.com/v1alpha1",
    "elastiservices",
);

/// The registration of this area.
pub const AREA: Area = Area {
    codes: codes::ENTRIES,
    definitions: || vec![ElastiService::crd()],
    roles: rights::ROLES,
    kinds: &[AreaKind {
        resource: ELASTI_SERVICE,
        title: "Services that can sleep",
        key: "elastiServices",
        summary,
        assess,
        related: &[],
    }],
    check: Some(AreaCheck {
        reads: &[ELASTI_SERVICE, check::SERVICE, check::SLICE],
        judge: check::findings,
    }),
    ..Area::new("idle", "services that sleep")
};

/// Condition types of an ElastiService. Most are neither good nor bad by themselves; the account
/// interprets them.
const CONDITIONS: &[&str] = &[
    "Ready",
    "Stalled",
    "Reconciling",
    "TriggersUnknown",
    "OutsidePeriod",
    "UnresolvedReferences",
    "Conflict",
    "Unprovable",
    "WouldSleep",
];

/// The account of `object`, if it is a valid ElastiService.
fn account_of(object: &Value, now: Timestamp) -> Option<Account> {
    let service = ElastiService::deserialize(object).ok()?;
    Some(account(&service, now))
}

/// The assessment of an ElastiService, from its account.
fn assess(object: &Value, now: Timestamp) -> Option<Assessment> {
    let account = account_of(object, now)?;
    let verdict = match account.state {
        State::Stalled => Verdict::Degraded,
        State::Unseen | State::Waking | State::FallingAsleep => Verdict::Progressing,
        State::Asleep | State::Awake | State::Leaving => Verdict::Healthy,
    };
    Some(Assessment {
        verdict,
        why: account.why,
        advice: account.advice,
        covers: CONDITIONS,
    })
}

/// The sleep state of an ElastiService, and for how long it has slept.
fn summary(object: &Value, now: Timestamp) -> String {
    let Some(account) = account_of(object, now) else {
        return "cannot be decoded".to_owned();
    };
    let state = account.state.word();
    let since = account
        .asleep_since
        .filter(|_| account.state == State::Asleep);
    match since {
        Some(since) => {
            let seconds = now.duration_since(since).as_secs().max(0);
            format!("{state} for {}", span(seconds))
        }
        None => state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::AREA;

    #[test]
    fn the_registration_is_complete() {
        assert_eq!(AREA.problems(), [""; 0]);
    }
}
