//! Settings of namespaces, conditions and Events, and timeouts.

use super::*;
use crate::{
    account::State,
    api::{
        LastWake,
        annotations::{KEEP_AWAKE_UNTIL, OBSERVE_ONLY, OFF, SLEEP, WAKE},
    },
    trigger::Window,
};

fn switches(rows: &[(&str, &str)]) -> Switches {
    let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Switches::of(&rows.iter().map(row).collect())
}

#[test]
fn replacing_resolvers_wakes_nothing_and_their_absence_does() {
    let mut case = Case::asleep();
    case.resolvers.clear();
    case.no_resolver_for = Duration::from_secs(3);
    let last = case.settle().pop().unwrap();
    assert_eq!(last.reason.name, "ResolversNotReady");
    assert_eq!(last.requeue_after, Some(Duration::from_secs(7)));
    assert_eq!(case.replicas, Some(0));
    case.no_resolver_for = Duration::from_secs(10);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(
        case.status().last_wake.unwrap().cause,
        "ResolverUnavailable"
    );
}

#[test]
fn no_service_falls_asleep_without_resolvers() {
    let mut case = Case::new();
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    assert!(case.status().hand_off.is_some(), "it is about to sleep");
    case.resolvers.clear();
    case.no_resolver_for = Duration::ZERO;
    for _ in 0..3 {
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(3));
    }
}

#[test]
fn a_proof_is_only_valid_for_its_resolvers() {
    let mut case = Case::new();
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    let hand_off = case.status().hand_off.unwrap();
    assert!(hand_off.proved.is_some());
    assert_eq!(hand_off.resolvers, ["10.0.0.9"]);
    // Another resolver becomes ready before the pods end, and it is not proved to be reached.
    case.resolvers.push(ResolverEndpoint {
        address: "10.0.0.10".parse().unwrap(),
        pod: "second".to_owned(),
        ..resolver()
    });
    case.proves = false;
    case.proof = None;
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    case.proves = true;
    case.proof = None;
    case.settle();
    assert_eq!(case.status().hand_off.unwrap().resolvers.len(), 2);
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
}

#[test]
fn a_service_that_is_switched_off_reports_it() {
    for triggers in [
        json!([{"type": "prometheus"}]),
        json!([{"type": "requests"}]),
    ] {
        let mut case = Case::new();
        case.service.spec.triggers = serde_json::from_value(triggers).unwrap();
        case.verdict = idle();
        case.switches = switches(&[(OFF, "true")]);
        case.pass(3600);
        case.settle();
        assert_eq!(case.replicas, Some(3));
        let (truth, reason) = case.ready();
        assert_eq!((&*truth, &*reason), ("True", "SwitchedOff"));
        case.switches = switches(&[]);
        case.verdict = busy();
        case.settle();
        assert_ne!(case.ready().1, "SwitchedOff");
    }
}

#[test]
fn a_wake_request_on_the_namespace_wakes_its_services() {
    let mut case = Case::asleep();
    let later = case.now + SignedDuration::from_secs(60);
    case.switches = switches(&[(WAKE, &later.to_string())]);
    let last = case.settle().pop().unwrap();
    assert_eq!(case.replicas, Some(0));
    assert_eq!(
        last.requeue_after,
        Some(Duration::from_mins(1)),
        "it is not the time"
    );
    case.pass(60);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(case.status().last_wake.unwrap().cause, "WakeRequested");
    // It sleeps again after its cooldown.
    case.ready_pods = 2;
    case.settle();
    case.pass(600);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
}

#[test]
fn a_namespace_can_be_switched_off_or_observed() {
    let mut case = Case::asleep();
    case.switches = switches(&[(OFF, "true")]);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    let mut case = Case::new();
    case.verdict = idle();
    case.switches = switches(&[(OBSERVE_ONLY, "true")]);
    case.pass(3600);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    assert_eq!(case.condition("WouldSleep").0, "True");
}

#[test]
fn observed_savings_are_added_up() {
    let mut case = Case::new();
    case.service.spec.observe_only = true;
    case.verdict = idle();
    case.pass(3600);
    let events = case.settle().into_iter().flat_map(|step| step.events);
    let events = events.filter(|event| event.reason == "WouldSleep");
    assert_eq!(events.count(), 1);
    let would = case.status().would_sleep.unwrap();
    assert_eq!((would.since, would.replicas), (case.now, 3));
    let conditions = case.status().conditions;
    let would = conditions.iter().find(|it| it.type_ == "WouldSleep");
    let message = &would.unwrap().message;
    assert!(message.ends_with("it would save 3 replicas"), "{message}");
    case.pass(100);
    assert_eq!(case.settle().len(), 1, "nothing is written as time goes by");
    // A user scales it, which ends one sum and begins another.
    case.replicas = Some(5);
    case.settle();
    assert_eq!(case.status().would_save_replica_seconds, Some(300));
    case.pass(10);
    case.verdict = busy();
    case.settle();
    assert_eq!(case.status().would_save_replica_seconds, Some(350));
    assert_eq!(case.status().would_sleep, None);
    assert_eq!(case.replicas, Some(5));
}

#[test]
fn a_conflict_is_reported_and_cleared() {
    let mut case = Case::new();
    case.settle();
    assert_eq!(case.condition("Conflict").0, "");
    case.conflict = Some(Reason::new(
        "GitOps",
        "Argo CD puts it back; have it ignore it",
    ));
    case.settle();
    let told = case.condition("Conflict");
    assert_eq!((&*told.0, &*told.1), ("True", "GitOps"));
    case.conflict = None;
    case.settle();
    assert_eq!(case.condition("Conflict").0, "False");
    assert_eq!(case.settle().len(), 1);
}

#[test]
fn the_parts_of_a_wake_are_measured_once_its_pods_are_ready() {
    let mut case = Case::asleep();
    case.verdict = busy();
    let measured = case.settle().iter().any(Decision::measures_wake);
    assert!(!measured, "no pod is ready");
    case.ready_pods = 2;
    let last = case.settle().pop().unwrap();
    assert!(last.measures_wake());
    let found = Breakdown {
        schedule: 900,
        ready: 2000,
        ..Breakdown::default()
    };
    case.breakdown = Some(found);
    let last = case.settle().pop().unwrap();
    assert!(!last.measures_wake(), "it is known");
    assert_eq!(case.status().last_wake.unwrap().breakdown, Some(found));
    // An old wake is not measured.
    let mut old = Case::new();
    old.settle();
    let mut status = old.status();
    status.last_wake = Some(LastWake {
        time: old.now - SignedDuration::from_hours(1),
        cause: "request".to_owned(),
        breakdown: None,
    });
    old.service.status = Some(status);
    assert!(!old.settle().iter().any(Decision::measures_wake));
}

#[test]
fn a_dual_stack_service_needs_resolvers_of_both_families() {
    let mut case = Case::new();
    let public = case.public.as_mut().unwrap();
    let both = vec!["IPv4".to_owned(), "IPv6".to_owned()];
    public.spec.as_mut().unwrap().ip_families = Some(both);
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    assert_eq!(case.ready().1, "ResolverFamilyMissing");
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
    case.resolvers.push(ResolverEndpoint {
        address: "fd00::9".parse().unwrap(),
        ..resolver()
    });
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(0), 2));
}

#[test]
fn no_service_uses_the_ports_of_another() {
    let mut case = Case::asleep();
    case.service.spec.service = "shop".to_owned();
    case.slices.clear();
    // No port is free for the other one, so the status still has those of the first.
    case.ports = Err(PortsExhausted(PortRange::default()));
    case.settle();
    assert_eq!(case.status().ports[0].service.as_deref(), Some("web"));
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
}

#[test]
fn without_a_resolver_no_slice_is_created() {
    let mut case = Case::asleep();
    case.resolvers.clear();
    case.slices.clear();
    case.no_resolver_for = Duration::from_secs(3);
    let steps = case.settle();
    let untouched = |step: &Decision| !step.writes_slices() && !step.deletes_slices();
    assert!(steps.iter().all(untouched));
    assert_eq!(case.status().mode, Some(crate::api::Mode::Proxy));
}

#[test]
fn a_former_target_is_restored_once_and_first() {
    let found = |replicas, paused| FormerTarget {
        target: scaled(replicas, "former"),
        kind: Some(deployments()),
        keda: Keda::Found {
            metadata: Box::default(),
            paused,
            by_us: paused,
        },
    };
    let gone = FormerTarget {
        target: Target::Missing,
        kind: None,
        keda: Keda::Missing,
    };
    for (former, replicas, resume) in [
        (found(0, true), Some((3, false)), true),
        (found(2, false), None, false),
        (gone, None, false),
    ] {
        for deleted in [false, true] {
            let mut case = Case::asleep();
            case.former = Some(former.clone());
            // Other problems do not matter.
            case.public = None;
            let now = serde_json::json!(case.now);
            let deletion = deleted.then(|| serde_json::from_value(now).unwrap());
            case.service.metadata.deletion_timestamp = deletion;
            let first = case.decide();
            let restored = (first.scale_of("former"), first.resumes_keda());
            assert_eq!(restored, (replicas, resume));
            assert_eq!((first.scale_of("web"), first.finalizers()), (None, None));
            let status = &first.status;
            assert_eq!((&status.resting, status.asleep_since), (&None, None));
            assert_eq!(status.last_wake.as_ref().unwrap().cause, "TargetChanged");
            case.apply(&first);
            let settled = case.settle();
            let again = settled.iter().any(|step| step.scale_of("former").is_some());
            assert!(!again);
        }
    }
}

#[test]
fn a_dependency_is_woken_and_sleeps_again_after_its_cooldown() {
    let woken = |time| {
        let name = "web".to_owned();
        Some(DependentWake { time, name })
    };
    let mut case = Case::asleep();
    let asleep = case.status().asleep_since.unwrap();
    case.dependent_wake = woken(asleep - SignedDuration::from_secs(1));
    assert_eq!(case.settle().len(), 1, "that was before it fell asleep");
    case.dependent_wake = woken(case.now);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(case.status().last_wake.unwrap().cause, "needed by web");
    case.ready_pods = 2;
    case.settle();
    case.pass(599);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
    case.pass(1);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    // A later sleep request wins.
    case.pass(10);
    case.dependent_wake = woken(case.now);
    case.pass(1);
    case.annotate(SLEEP, &case.now.to_string());
    case.settle();
    assert_eq!(case.replicas, Some(0));
}

#[test]
fn unknown_triggers_are_reported_once_and_cleared() {
    let is = |case: &Case, kind: &str, status: &str, reason: &str| {
        let expected = (status.to_owned(), reason.to_owned());
        assert_eq!(case.condition(kind), expected);
    };
    let mut case = Case::new();
    case.settle();
    is(&case, "TriggersUnknown", "", "");
    case.verdict = Verdict::Unknown(Reason::new("PrometheusUnreachable", "no connection"));
    let steps = case.settle();
    is(&case, "TriggersUnknown", "True", "PrometheusUnreachable");
    let reported = |steps: &[Decision]| {
        let events = steps.iter().flat_map(|step| &step.events);
        events
            .filter(|event| event.reason == "PrometheusUnreachable")
            .count()
    };
    assert_eq!(reported(&steps), 1);
    // Before the next poll the condition stays.
    case.verdict = Verdict::Unknown(Reason::new("NotPolled", "not lately"));
    let steps = case.settle();
    is(&case, "TriggersUnknown", "True", "PrometheusUnreachable");
    assert_eq!(reported(&steps), 0);
    case.verdict = busy();
    case.settle();
    is(&case, "TriggersUnknown", "False", "TriggersEvaluated");
    for (reason, undecided, outside) in [
        (Window::INVALID, "True", ""),
        (Window::CLOSED, "False", "True"),
        ("Busy", "False", "False"),
    ] {
        case.verdict = Verdict::Busy(Reason::new(reason, "so it is"));
        case.settle();
        let (found, period) = (
            case.condition("TriggersUnknown").0,
            case.condition("OutsidePeriod").0,
        );
        assert_eq!((&*found, &*period), (undecided, outside), "{reason}");
    }
}

#[test]
fn unresolved_references_are_reported_and_cleared() {
    let mut case = Case::new();
    let port = json!([{"port": 80, "protocol": "HTTP"}, {"port": 9000, "protocol": "TCP"}]);
    case.service.spec.ports = serde_json::from_value(port).unwrap();
    case.missing_dependencies = vec!["cash".to_owned()];
    case.settle();
    let condition = |case: &Case| {
        let conditions = case.status().conditions.into_iter();
        let mut found = conditions.filter(|it| it.type_ == "UnresolvedReferences");
        found.next().map(|it| (it.status, it.reason, it.message))
    };
    let (truth, reason, message) = condition(&case).unwrap();
    assert_eq!((&*truth, &*reason), ("True", "NoSuchDependency"));
    assert_eq!(
        message,
        "spec.dependencies: there is no ElastiService cash in its namespace; \
         spec.ports[1].port: the Service web has no TCP port 9000"
    );
    case.missing_dependencies.clear();
    case.settle();
    assert_eq!(condition(&case).unwrap().1, "NoSuchPort");
    // While the Service is missing its ports are not known, and the condition stays.
    let public = case.public.take();
    case.settle();
    assert_eq!(condition(&case).unwrap().0, "True");
    case.public = public;
    case.service.spec.ports.pop();
    let annotations = case.service.metadata.annotations.get_or_insert_default();
    annotations.insert(KEEP_AWAKE_UNTIL.to_owned(), "18:00".to_owned());
    case.settle();
    let (_, reason, message) = condition(&case).unwrap();
    assert_eq!(reason, "InvalidTimestamp");
    assert!(message.contains("keep-awake-until: \"18:00\""), "{message}");
    case.service.metadata.annotations = None;
    case.settle();
    assert_eq!(condition(&case).unwrap().0, "False");
    assert_eq!(case.replicas, Some(3));
}

#[test]
fn a_service_with_counted_requests_is_awake_once_a_pod_is_ready() {
    let mut case = Case::new();
    case.service.spec.triggers = serde_json::from_value(json!([{"type": "requests"}])).unwrap();
    case.settle();
    assert_eq!(case.ready().1, "InPath");
    case.ready_pods = 0;
    case.settle();
    let (truth, reason) = case.ready();
    assert_eq!((&*truth, &*reason), ("False", "Waking"));
    let mut service = case.service.clone();
    service.status = Some(case.status());
    assert_eq!(State::of(&service), State::Waking);
    case.ready_pods = 1;
    case.settle();
    assert_eq!(case.ready().1, "InPath");
}

#[test]
fn retired_condition_types_are_removed_and_others_stay() {
    let mut case = Case::new();
    case.settle();
    let condition = |kind: &str| {
        serde_json::from_value(json!({
            "type": kind, "status": "True", "reason": "NoSuchPort", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }))
        .unwrap()
    };
    let status = case.service.status.as_mut().unwrap();
    let before = status.conditions.len();
    for kind in ["Undecided", "Unmatched", "Approved"] {
        status.conditions.push(condition(kind));
    }
    case.settle();
    let conditions = case.status().conditions;
    let has = |kind: &str| conditions.iter().any(|it| it.type_ == kind);
    assert!(!has("Undecided") && !has("Unmatched") && has("Approved"));
    assert_eq!(conditions.len(), before + 1);
}
