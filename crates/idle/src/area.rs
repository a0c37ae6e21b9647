//! What `idle` registers with the program: error codes, the definition of its kind, how an ElastiService is
//! summed up and judged, and the check of operator and resolvers.

mod check;
mod codes;
mod rights;

use jiff::Timestamp;
use kube::CustomResourceExt;
use neap_kit::{
    area::{Area, AreaCheck, AreaKind, ResourceType},
    clock::short_duration,
    explain::{Assessment, Verdict},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    account::{Account, State, account},
    api::{ElastiService, NotReady},
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
    "WakeFailed",
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
        State::Stalled | State::Failed => Verdict::Degraded,
        // Its sleep does not make it able to serve.
        State::Asleep if account.not_ready.is_some() => Verdict::Degraded,
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
    let cause = account.not_ready.as_ref().map(NotReady::cause);
    let cause = cause.map_or(String::new(), |cause| format!(" ({cause})"));
    let since = account
        .asleep_since
        .filter(|_| account.state == State::Asleep);
    match since {
        Some(since) => {
            let seconds = now.duration_since(since).as_secs().max(0);
            format!("{state} for {}{cause}", short_duration(seconds))
        }
        None => format!("{state}{cause}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_that_cannot_serve_is_degraded_whether_it_sleeps_or_not() {
        let not_ready = json!({
            "since": "2026-01-01T11:00:00Z", "reason": "ImagePullBackOff", "failed": true,
            "message": "pod cart-1: the image cart:1 of the container cart cannot be pulled",
        });
        let stalled = json!([{
            "type": "Stalled", "status": "True", "reason": "WakeFailed", "message": "no pod became ready",
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        }]);
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        for (status, verdict, shown) in [
            (
                json!({"observedGeneration": 1, "conditions": stalled, "notReady": not_ready}),
                Verdict::Degraded,
                "failed (ImagePullBackOff)",
            ),
            (
                json!({
                    "observedGeneration": 1, "asleepSince": "2026-01-01T11:00:00Z",
                    "notReady": not_ready,
                }),
                Verdict::Degraded,
                "asleep for 60m (ImagePullBackOff)",
            ),
            (
                json!({"observedGeneration": 1, "asleepSince": "2026-01-01T11:00:00Z"}),
                Verdict::Healthy,
                "asleep for 60m",
            ),
        ] {
            let service = json!({
                "metadata": {"name": "cart", "namespace": "shop"},
                "spec": {
                    "service": "cart",
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
                },
                "status": status,
            });
            assert_eq!(assess(&service, now).unwrap().verdict, verdict, "{status}");
            assert_eq!(summary(&service, now), shown);
        }
    }

    #[test]
    fn the_registration_is_complete() {
        assert_eq!(AREA.problems(), [""; 0]);
    }
}
