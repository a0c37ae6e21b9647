//! The state of ElastiServices, from their account.

use jiff::Timestamp;
use neap_idle::{
    account::{Account, State, account},
    api::ElastiService,
};
use neap_kit::explain::{Assessment, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::inspect::read::ELASTI_SERVICE;

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
pub(crate) fn account_of(kind: &str, object: &Value, now: Timestamp) -> Option<Account> {
    let is = kind == ELASTI_SERVICE.name;
    let service = is.then(|| ElastiService::deserialize(object).ok())??;
    Some(account(&service, now))
}

/// The assessment of `object`, from its account, if it is a valid ElastiService.
pub(crate) fn assessment_of(kind: &str, object: &Value, now: Timestamp) -> Option<Assessment> {
    let account = account_of(kind, object, now)?;
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
