//! What is known of a service that may sleep.

use jiff::Timestamp;
use neap_idle::{
    account::{Account, State, account},
    api::ElastiService,
};
use neap_kit::explain::{Judgement, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::ask::read::ELASTI_SERVICE;

/// Its conditions. Most of them are neither good nor bad: what they mean is in the account.
const CONDITIONS: &[&str] = &[
    "Ready",
    "Stalled",
    "Reconciling",
    "Undecided",
    "OutsidePeriod",
    "Unmatched",
    "Conflict",
    "Unprovable",
    "WouldSleep",
];

/// The account of `object`, if it is of that kind and can be understood.
pub(crate) fn accounted(kind: &str, object: &Value, now: Timestamp) -> Option<Account> {
    let is = kind == ELASTI_SERVICE.name;
    let service = is.then(|| ElastiService::deserialize(object).ok())??;
    Some(account(&service, now))
}

/// How it stands, by its account; nothing if it is of another kind.
pub(crate) fn judged(kind: &str, object: &Value, now: Timestamp) -> Option<Judgement> {
    let account = accounted(kind, object, now)?;
    let verdict = match account.state {
        State::Stalled => Verdict::Troubled,
        State::Unseen | State::Waking | State::FallingAsleep => Verdict::OnItsWay,
        State::Asleep | State::Awake | State::Leaving => Verdict::Well,
    };
    Some(Judgement {
        verdict,
        why: account.why,
        advice: account.advice,
        covers: CONDITIONS,
    })
}
