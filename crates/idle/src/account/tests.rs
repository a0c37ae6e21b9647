use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn service(spec: &Value, status: &Value) -> ElastiService {
    let mut all = json!({
        "service": "cart",
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
    });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": all, "status": status,
    }))
    .unwrap()
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": "so it is",
        "lastTransitionTime": "2026-01-01T11:00:00Z",
    })
}

#[test]
fn the_state_follows_from_the_status() {
    let requests = json!({"triggers": [{"type": "requests"}]});
    let plain = json!({});
    for (spec, status, state, first) in [
        (
            &plain,
            json!(null),
            State::Unseen,
            "no operator has reconciled it yet",
        ),
        (
            &plain,
            json!({"observedGeneration": 1, "asleepSince": "2026-01-01T11:59:00Z",
                "conditions": [condition("Stalled", "ServiceMissing")]}),
            State::Stalled,
            "ServiceMissing: so it is",
        ),
        (
            &plain,
            json!({"observedGeneration": 1, "mode": "proxy", "asleepSince": "2026-01-01T11:59:00Z",
                "conditions": [condition("Ready", "Asleep")]}),
            State::Asleep,
            "Asleep: so it is",
        ),
        (
            &plain,
            json!({"observedGeneration": 1, "mode": "proxy",
                "handOff": {"towards": "Resolvers", "since": "2026-01-01T11:59:00Z"},
                "conditions": [condition("Reconciling", "FallingAsleep")]}),
            State::FallingAsleep,
            "FallingAsleep: so it is",
        ),
        (
            &plain,
            json!({"observedGeneration": 1, "mode": "proxy",
                "conditions": [condition("Reconciling", "Waking")]}),
            State::Waking,
            "Waking: so it is",
        ),
        (
            &requests,
            json!({"observedGeneration": 1, "mode": "proxy",
                "conditions": [condition("Ready", "InPath")]}),
            State::Awake,
            "InPath: so it is",
        ),
        (
            &plain,
            json!({"observedGeneration": 1, "mode": "serve",
                "conditions": [condition("Ready", "Awake")]}),
            State::Awake,
            "Awake: so it is",
        ),
    ] {
        let account = account(&service(spec, &status), now());
        assert_eq!(account.state, state, "{status}");
        assert_eq!(account.why[0], first, "{status}");
    }
}

#[test]
fn the_sleep_in_progress_counts_as_saved() {
    let status = json!({
        "observedGeneration": 1, "mode": "proxy", "asleepSince": "2026-01-01T11:00:00Z",
        "replicasBefore": 3, "savedReplicaSeconds": 100,
    });
    let account = account(&service(&json!({}), &status), now());
    assert_eq!(account.saved_replica_seconds, 100 + 3 * 3600);
    assert!(
        account
            .why
            .contains(&"it has slept for 60m; 3 replicas would have run".to_owned())
    );
}

#[test]
fn an_awake_service_has_a_reason_not_to_sleep() {
    let requests = json!([{"type": "requests"}]);
    let awake = |mut spec: Value, asked: &str| {
        let asked = Some(asked).filter(|asked| !asked.is_empty());
        spec["cooldownPeriod"] = 60.into();
        let status = json!({
            "observedGeneration": 1, "mode": "serve", "lastScaledUpTime": asked,
            "sleepsAfter": "2026-01-01T12:00:30Z",
        });
        account(&service(&spec, &status), now()).why[0].clone()
    };
    let long_ago = "2026-01-01T10:00:00Z";
    for (spec, asked, why) in [
        (
            json!({}),
            long_ago,
            "spec.triggers is empty, so nothing shows when it is idle",
        ),
        (
            json!({"keepAwakeUntil": "2026-01-01T13:00:00Z", "triggers": requests}),
            long_ago,
            "it is kept awake until 2026-01-01T13:00:00Z",
        ),
        (
            json!({"triggers": requests}),
            "2026-01-01T11:59:20Z",
            "the last recorded request was 40s ago; it sleeps in 30s at the earliest",
        ),
        (
            json!({"triggers": requests}),
            "",
            "it sleeps once the resolvers have received no request for 60s, or longer the more pods are \
             ready beside them",
        ),
    ] {
        assert_eq!(awake(spec, asked), why);
    }
}

#[test]
fn a_service_that_is_switched_off_has_no_time_to_sleep() {
    let spec = json!({"triggers": [{"type": "requests"}]});
    let status = json!({
        "observedGeneration": 1, "mode": "proxy", "lastScaledUpTime": now(),
        "conditions": [condition("Ready", "SwitchedOff")],
    });
    let account = account(&service(&spec, &status), now());
    assert_eq!(account.state, State::Awake);
    assert_eq!(account.why, ["SwitchedOff: so it is"]);
}

#[test]
fn an_observed_service_shows_what_it_would_save() {
    let idle = json!({"since": "2026-01-01T11:00:00Z", "replicas": 2});
    for (observed, status, saves) in [
        (
            true,
            json!({"wouldSleep": idle, "wouldSaveReplicaSeconds": 5}),
            Some(5 + 2 * 3600),
        ),
        // Observed by its namespace.
        (false, json!({"wouldSleep": idle}), Some(2 * 3600)),
        (true, json!({"wouldSaveReplicaSeconds": 5}), Some(5)),
        (true, json!({}), Some(0)),
        (false, json!({}), None),
    ] {
        let service = service(&json!({"observeOnly": observed}), &status);
        let account = account(&service, now());
        assert_eq!(account.would_save_replica_seconds, saves, "{status}");
        assert_eq!(account.saved_replica_seconds, 0);
    }
}

#[test]
fn advice_names_the_other_scaler() {
    for (reason, says) in [
        ("GitOps", "what GitOps applies"),
        ("UnnamedScaledObject", "type keda"),
        ("UnnamedAutoscaler", "type hpa"),
        ("AutoscalerToZero", "minReplicas"),
    ] {
        let status =
            json!({"observedGeneration": 1, "conditions": [condition("Conflict", reason)]});
        let spec = json!({"triggers": [{"type": "requests"}]});
        let advice = account(&service(&spec, &status), now()).advice;
        assert!(
            matches!(&advice[..], [one] if one.contains(says)),
            "{reason}: {advice:?}"
        );
    }
}

#[test]
fn a_workload_and_a_service_learn_which_elasti_service_lets_them_sleep() {
    let asleep = json!({
        "observedGeneration": 1, "mode": "proxy", "asleepSince": "2026-01-01T11:00:00Z",
        "conditions": [condition("Ready", "Asleep")],
    });
    let asleep = service(&json!({}), &asleep);
    for kind in ["Deployment", "Service"] {
        let (headline, why) = notice(&asleep, kind, "cart", now()).unwrap();
        assert_eq!(headline, "it sleeps, by ElastiService cart");
        assert!(
            why.starts_with("ElastiService cart is asleep: Asleep: so it is; it has slept for 60m"),
            "{why}"
        );
    }
    assert_eq!(notice(&asleep, "StatefulSet", "cart", now()), None);
    assert_eq!(notice(&asleep, "Deployment", "other", now()), None);
    let awake = json!({"observedGeneration": 1, "conditions": [condition("Ready", "Awake")]});
    let (headline, _) = notice(&service(&json!({}), &awake), "Deployment", "cart", now()).unwrap();
    assert_eq!(headline, "it may sleep, by ElastiService cart");
}
