//! What is said for many at once, what is told of one, and what is waited for.

use super::*;
use crate::{
    account::State,
    api::LastWake,
    service::facts::{KEEP_AWAKE_UNTIL, OBSERVE_ONLY, OFF, WAKE},
    trigger::Window,
};

fn said(rows: &[(&str, &str)]) -> Switches {
    let row = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Switches::of(&rows.iter().map(row).collect())
}

#[test]
fn resolvers_that_are_replaced_wake_nobody_and_those_that_stay_away_do() {
    let mut case = Case::asleep();
    case.resolvers.clear();
    case.deserted = Duration::from_secs(3);
    let last = case.settle().pop().unwrap();
    assert_eq!(last.because.reason, "ResolverAway");
    assert_eq!(last.again, Some(Duration::from_secs(7)));
    assert_eq!(case.replicas, Some(0));
    case.deserted = Duration::from_secs(10);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(
        case.status().last_wake.unwrap().cause,
        "ResolverUnavailable"
    );
}

#[test]
fn nothing_falls_asleep_while_resolvers_are_away() {
    let mut case = Case::new();
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    assert!(case.status().hand_off.is_some(), "it is about to sleep");
    case.resolvers.clear();
    case.deserted = Duration::ZERO;
    for _ in 0..3 {
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(3));
    }
}

#[test]
fn a_proof_is_of_those_resolvers_that_gave_it() {
    let mut case = Case::new();
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    let hand_off = case.status().hand_off.unwrap();
    assert!(hand_off.proved.is_some());
    assert_eq!(hand_off.resolvers, ["10.0.0.9"]);
    // Another comes in before the pods end, and whether it is reached nobody knows.
    case.resolvers.push(Resolver {
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
fn what_a_switch_holds_awake_says_so() {
    for triggers in [
        json!([{"type": "prometheus"}]),
        json!([{"type": "requests"}]),
    ] {
        let mut case = Case::new();
        case.service.spec.triggers = serde_json::from_value(triggers).unwrap();
        case.verdict = idle();
        case.switches = said(&[(OFF, "true")]);
        case.pass(3600);
        case.settle();
        assert_eq!(case.replicas, Some(3));
        let (truth, reason) = case.ready();
        assert_eq!((&*truth, &*reason), ("True", "SwitchedOff"));
        case.switches = said(&[]);
        case.verdict = busy();
        case.settle();
        assert_ne!(case.ready().1, "SwitchedOff");
    }
}

#[test]
fn everything_is_woken_when_somebody_says_so_for_its_namespace() {
    let mut case = Case::asleep();
    let later = case.now + SignedDuration::from_secs(60);
    case.switches = said(&[(WAKE, &later.to_string())]);
    let last = case.settle().pop().unwrap();
    assert_eq!(case.replicas, Some(0));
    assert_eq!(
        last.again,
        Some(Duration::from_mins(1)),
        "it is not the time"
    );
    case.pass(60);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(case.status().last_wake.unwrap().cause, "Asked");
    // And once it was idle for long enough, it sleeps again.
    case.ready_pods = 2;
    case.settle();
    case.pass(600);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
}

#[test]
fn a_namespace_can_be_switched_off_and_only_observed() {
    let mut case = Case::asleep();
    case.switches = said(&[(OFF, "true")]);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    let mut case = Case::new();
    case.verdict = idle();
    case.switches = said(&[(OBSERVE_ONLY, "true")]);
    case.pass(3600);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    assert_eq!(case.condition("WouldSleep").0, "True");
}

#[test]
fn what_would_have_been_saved_is_added_up() {
    let mut case = Case::new();
    case.service.spec.observe_only = true;
    case.verdict = idle();
    case.pass(3600);
    let notes = case.settle().into_iter().flat_map(|step| step.notes);
    assert_eq!(notes.filter(|note| note.reason == "WouldSleep").count(), 1);
    let would = case.status().would_sleep.unwrap();
    assert_eq!((would.since, would.replicas), (case.now, 3));
    let conditions = case.status().conditions;
    let would = conditions.iter().find(|it| it.type_ == "WouldSleep");
    let message = &would.unwrap().message;
    assert!(message.ends_with("it would save 3 replicas"), "{message}");
    case.pass(100);
    assert_eq!(case.settle().len(), 1, "nothing is written as time goes by");
    // Somebody scales it, which ends one sum and begins another.
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
fn whoever_scales_it_unasked_is_told_of_and_no_longer_once_gone() {
    let mut case = Case::new();
    case.settle();
    assert_eq!(case.condition("Conflict").0, "");
    case.conflict = Some(Because::new(
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
fn where_the_time_of_a_wake_went_is_asked_once_its_pods_answer() {
    let mut case = Case::asleep();
    case.verdict = busy();
    let asked = case.settle().iter().any(|step| step.measure);
    assert!(!asked, "no pod is ready");
    case.ready_pods = 2;
    let last = case.settle().pop().unwrap();
    assert!(last.measure);
    let found = Breakdown {
        schedule: 900,
        ready: 2000,
        ..Breakdown::default()
    };
    case.breakdown = Some(found);
    let last = case.settle().pop().unwrap();
    assert!(!last.measure, "it is known");
    assert_eq!(case.status().last_wake.unwrap().breakdown, Some(found));
    // Of what was long ago nobody can say.
    let mut old = Case::new();
    old.settle();
    let mut status = old.status();
    status.last_wake = Some(LastWake {
        time: old.now - SignedDuration::from_hours(1),
        cause: "request".to_owned(),
        breakdown: None,
    });
    old.service.status = Some(status);
    assert!(!old.settle().iter().any(|step| step.measure));
}

#[test]
fn a_service_of_two_families_sleeps_only_where_resolvers_have_both() {
    let mut case = Case::new();
    let public = case.public.as_mut().unwrap();
    let both = vec!["IPv4".to_owned(), "IPv6".to_owned()];
    public.spec.as_mut().unwrap().ip_families = Some(both);
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    assert_eq!(case.ready().1, "ResolverFamilyMissing");
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
    case.resolvers.push(Resolver {
        address: "fd00::9".parse().unwrap(),
        ..resolver()
    });
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(0), 2));
}

#[test]
fn resolvers_come_into_no_service_on_the_ports_of_another() {
    let mut case = Case::asleep();
    case.service.spec.service = "shop".to_owned();
    case.slices.clear();
    // No port is left for the other one, so the status still has those of the first.
    case.ports = Err(Exhausted(crate::service::ports::Range::default()));
    case.settle();
    assert_eq!(case.status().ports[0].service.as_deref(), Some("web"));
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
}

#[test]
fn with_nobody_to_put_there_no_slice_is_made() {
    let mut case = Case::asleep();
    case.resolvers.clear();
    case.slices.clear();
    case.deserted = Duration::from_secs(3);
    let steps = case.settle();
    assert!(steps.iter().all(|step| step.slices == Slices::Leave));
    assert_eq!(case.status().mode, Some(crate::api::Mode::Proxy));
}

#[test]
fn what_slept_before_is_restored_once_and_first() {
    let found = |replicas, paused| Former {
        target: Target::Scaled {
            replicas,
            seen: Box::default(),
        },
        keda: Keda::Found {
            seen: Box::default(),
            paused,
            by_us: paused,
        },
    };
    let gone = Former {
        target: Target::Missing,
        keda: Keda::Missing,
    };
    for (former, replicas, resume) in [
        (found(0, true), Some(3), true),
        (found(2, false), None, false),
        (gone, None, false),
    ] {
        for deleted in [false, true] {
            let mut case = Case::asleep();
            case.former = Some(former.clone());
            // Whatever else is the matter with it.
            case.public = None;
            let now = serde_json::json!(case.now);
            let deletion = deleted.then(|| serde_json::from_value(now).unwrap());
            case.service.metadata.deletion_timestamp = deletion;
            let first = case.decide();
            let restore = first.restore.unwrap();
            assert_eq!((restore.replicas, restore.resume), (replicas, resume));
            assert_eq!((first.scale, first.finalizer), (None, Finalizer::Leave));
            let status = &first.status;
            assert_eq!((&status.resting, status.asleep_since), (&None, None));
            assert_eq!(status.last_wake.as_ref().unwrap().cause, "TargetChanged");
            case.apply(&first);
            assert!(case.settle().iter().all(|step| step.restore.is_none()));
        }
    }
}

#[test]
fn what_somebody_who_woke_needs_is_woken_and_sleeps_again_in_its_time() {
    let needed = |since| {
        let by = "web".to_owned();
        Some(Needed { since, by })
    };
    let mut case = Case::asleep();
    let asleep = case.status().asleep_since.unwrap();
    case.needed = needed(asleep - SignedDuration::from_secs(1));
    assert_eq!(case.settle().len(), 1, "that was before it fell asleep");
    case.needed = needed(case.now);
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(case.status().last_wake.unwrap().cause, "Needed");
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
    // What is told to sleep after that sleeps.
    case.pass(10);
    case.needed = needed(case.now);
    case.pass(1);
    case.annotate(crate::service::facts::SLEEP, &case.now.to_string());
    case.settle();
    assert_eq!(case.replicas, Some(0));
}

#[test]
fn what_keeps_triggers_from_saying_anything_is_told_once_and_taken_back() {
    let is = |case: &Case, kind: &str, status: &str, reason: &str| {
        let expected = (status.to_owned(), reason.to_owned());
        assert_eq!(case.condition(kind), expected);
    };
    let mut case = Case::new();
    case.settle();
    is(&case, "Undecided", "", "");
    case.verdict = Verdict::Unknown(Because::new("PrometheusUnreachable", "nobody is there"));
    let steps = case.settle();
    is(&case, "Undecided", "True", "PrometheusUnreachable");
    let told = |steps: &[Decision]| {
        let notes = steps.iter().flat_map(|step| &step.notes);
        notes
            .filter(|note| note.reason == "PrometheusUnreachable")
            .count()
    };
    assert_eq!(told(&steps), 1);
    // Whoever has not been asked again yet has not said anything else.
    case.verdict = Verdict::Unknown(Because::new("NotAsked", "not lately"));
    let steps = case.settle();
    is(&case, "Undecided", "True", "PrometheusUnreachable");
    assert_eq!(told(&steps), 0);
    case.verdict = busy();
    case.settle();
    is(&case, "Undecided", "False", "Decided");
    for (reason, undecided, outside) in [
        (Window::INVALID, "True", ""),
        (Window::CLOSED, "False", "True"),
        ("Busy", "False", "False"),
    ] {
        case.verdict = Verdict::Busy(Because::new(reason, "so it is"));
        case.settle();
        let (found, period) = (
            case.condition("Undecided").0,
            case.condition("OutsidePeriod").0,
        );
        assert_eq!((&*found, &*period), (undecided, outside), "{reason}");
    }
}

#[test]
fn what_is_named_and_not_there_is_said_and_taken_back() {
    let mut case = Case::new();
    let port = json!([{"port": 80, "protocol": "HTTP"}, {"port": 9000, "protocol": "TCP"}]);
    case.service.spec.ports = serde_json::from_value(port).unwrap();
    case.absent = vec!["cash".to_owned()];
    case.settle();
    let condition = |case: &Case| {
        let conditions = case.status().conditions.into_iter();
        let mut found = conditions.filter(|it| it.type_ == "Unmatched");
        found.next().map(|it| (it.status, it.reason, it.message))
    };
    let (truth, reason, message) = condition(&case).unwrap();
    assert_eq!((&*truth, &*reason), ("True", "NoSuchDependency"));
    assert_eq!(
        message,
        "spec.dependencies: there is no ElastiService cash in its namespace; \
         spec.ports[1].port: the Service web has no TCP port 9000"
    );
    case.absent.clear();
    case.settle();
    assert_eq!(condition(&case).unwrap().1, "NoSuchPort");
    // Whether a Service that is gone for a moment has it nobody knows.
    let public = case.public.take();
    case.settle();
    assert_eq!(condition(&case).unwrap().0, "True");
    case.public = public;
    case.service.spec.ports.pop();
    let annotations = case.service.metadata.annotations.get_or_insert_default();
    annotations.insert(KEEP_AWAKE_UNTIL.to_owned(), "18:00".to_owned());
    case.settle();
    let (_, reason, message) = condition(&case).unwrap();
    assert_eq!(reason, "NoSuchMoment");
    assert!(message.contains("keep-awake-until: \"18:00\""), "{message}");
    case.service.metadata.annotations = None;
    case.settle();
    assert_eq!(condition(&case).unwrap().0, "False");
    assert_eq!(case.replicas, Some(3));
}

#[test]
fn one_that_is_counted_for_is_not_awake_before_a_pod_is_ready() {
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
