//! Sleep and wake, step by step.

use k8s_openapi::api::core::v1::ServiceSpec;
use kube::api::ObjectMeta;

use super::*;
use crate::api::{
    Mode, Towards, TriggerKind,
    annotations::{KEEP_AWAKE_UNTIL, SLEEP, WAKE},
};

fn is(pair: &(String, String), truth: &str, reason: &str) {
    assert_eq!((&*pair.0, &*pair.1), (truth, reason));
}

#[test]
fn a_service_in_use_is_left_alone() {
    let mut case = Case::new();
    let steps = case.settle();
    assert!(steps[0].adds_finalizer(), "before any object is made");
    assert_eq!(case.status().ports.len(), 1);
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
    assert!(case.private.is_some());
    assert_eq!(case.status().mode, Some(Mode::Serve));
    is(&case.ready(), "True", "Awake");
    // Requests are recorded from time to time, not each time.
    let noted = case.status().last_scaled_up_time;
    case.pass(149);
    case.settle();
    assert_eq!(case.status().last_scaled_up_time, noted);
    case.pass(1);
    case.settle();
    assert_eq!(case.status().last_scaled_up_time, Some(case.now));
}

#[test]
fn it_sleeps_after_the_cooldown_the_proof_and_the_grace() {
    let mut case = Case::new();
    case.settle();
    case.verdict = idle();
    case.pass(599);
    let steps = case.settle();
    let last = steps.last().unwrap();
    assert_eq!(last.reason.name, "CoolingDown");
    assert_eq!(last.requeue_after.map(|again| again.as_secs()), Some(1));
    case.pass(1);
    // Resolvers enter the path before the proof, and pods end after it.
    case.proves = false;
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 1));
    let slice = &case.slices[0];
    assert_eq!(slice.ports.as_ref().unwrap()[0].port, Some(20_000));
    is(&case.ready(), "False", "FallingAsleep");
    case.pass(3600);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    case.proves = true;
    case.settle();
    let hand_off = case.status().hand_off.unwrap();
    assert_eq!(hand_off.towards, Towards::Resolvers);
    assert_eq!(hand_off.proved, Some(case.now));
    case.pass(4);
    case.settle();
    assert_eq!(case.replicas, Some(3), "the grace is not over");
    case.pass(1);
    let steps = case.settle();
    assert_eq!(steps[0].scale_of("web"), Some((0, true)));
    assert_eq!(case.replicas, Some(0));
    let status = case.status();
    assert_eq!(
        (status.mode, status.replicas_before),
        (Some(Mode::Proxy), Some(3))
    );
    assert_eq!(
        (status.asleep_since, status.hand_off),
        (Some(case.now), None)
    );
    is(&case.ready(), "True", "Asleep");
}

#[test]
fn a_request_before_the_pods_end_keeps_them() {
    for comes in [busy(), unknown()] {
        let mut case = Case::new();
        case.verdict = idle();
        case.settle();
        assert_eq!(case.slices.len(), 1);
        case.pass(5);
        case.verdict = comes;
        case.settle();
        assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
        assert_eq!(case.status().mode, Some(Mode::Serve));
        assert_eq!(case.status().hand_off, None);
    }
}

#[test]
fn an_old_proof_is_no_proof() {
    let mut case = Case::new();
    case.verdict = idle();
    case.settle();
    assert!(case.status().hand_off.unwrap().proved.is_some());
    case.proves = false;
    case.proof = None;
    case.pass(121);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    assert_eq!(case.status().hand_off.unwrap().proved, None);
}

#[test]
fn it_wakes_and_resolvers_go_once_pods_are_proved_to_be_reached() {
    let mut case = Case::asleep();
    case.annotate(WAKE, &case.now.to_string());
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 1));
    let status = case.status();
    assert_eq!(status.last_wake.unwrap().cause, "WakeRequested");
    assert_eq!(status.saved_replica_seconds, Some(3 * 3600));
    is(&case.ready(), "False", "Waking");
    case.proves = false;
    case.ready_pods = 1;
    case.settle();
    assert_eq!(case.slices.len(), 1, "nothing is proved");
    is(&case.ready(), "False", "HandingOffToPods");
    case.proves = true;
    let steps = case.settle();
    let gone = steps.iter().position(Decision::deletes_slices);
    let after: Vec<_> = steps[gone.unwrap()..].iter().collect();
    assert!(
        after
            .iter()
            .any(|step| step.claim().is_some_and(|it| !it.beside_resolvers))
    );
    assert_eq!((case.slices.len(), case.status().hand_off), (0, None));
    is(&case.ready(), "True", "Awake");
    // It does not sleep before its cooldown is over.
    case.pass(599);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
}

#[test]
fn resolvers_return_if_the_pods_go_while_they_leave() {
    let mut case = Case::asleep();
    case.replicas = Some(2);
    case.ready_pods = 1;
    while case.slices.len() == 1 {
        let decision = case.decide();
        case.apply(&decision);
    }
    case.ready_pods = 0;
    case.proves = false;
    case.settle();
    assert_eq!(case.slices.len(), 1);
    is(&case.ready(), "False", "Waking");
}

#[test]
fn every_reason_to_be_awake_wakes_it() {
    type Change = fn(&mut Case);
    let causes: [(&str, Change); 6] = [
        ("Busy", |case| case.verdict = busy()),
        ("SwitchedOff", |case| case.switches.off = true),
        ("ResolverUnavailable", |case| case.resolvers.clear()),
        ("AutoscalerMissing", |case| case.keda = Keda::Missing),
        ("KeptAwake", |case| {
            let later = case.now + SignedDuration::from_secs(60);
            case.annotate(KEEP_AWAKE_UNTIL, &later.to_string());
        }),
        ("ObserveOnly", |case| case.service.spec.observe_only = true),
    ];
    for (cause, change) in causes {
        let mut case = Case::asleep();
        case.verdict = unknown();
        case.settle();
        assert_eq!(case.replicas, Some(0), "{cause}: nothing wakes it");
        assert_eq!(case.settle().len(), 1, "{cause}: nothing is left to write");
        change(&mut case);
        case.settle();
        assert_eq!(case.replicas, Some(2), "{cause}");
        assert_eq!(case.status().last_wake.unwrap().cause, cause);
    }
}

#[test]
fn no_service_sleeps_that_could_not_wake() {
    type Change = fn(&mut Case);
    let problems: [(&str, Change); 5] = [
        ("ServiceMissing", |case| case.public = None),
        ("TargetMissing", |case| case.replicas = None),
        ("ResolverUnavailable", |case| case.resolvers.clear()),
        ("PortsExhausted", |case| {
            case.ports = Err(PortsExhausted(PortRange::default()));
        }),
        ("ServiceUnsuitable", |case| {
            let public = case.public.as_mut().unwrap();
            public.spec.as_mut().unwrap().selector = None;
        }),
    ];
    for (reason, change) in problems {
        let mut case = Case::new();
        case.verdict = idle();
        change(&mut case);
        let steps = case.settle();
        is(&case.ready(), "False", reason);
        is(&case.condition("Stalled"), "True", reason);
        assert_eq!(case.slices.len(), 0);
        assert_ne!(case.replicas, Some(0));
        let events = steps.iter().flat_map(|step| &step.events);
        let events = events.filter(|event| event.reason == reason);
        assert_eq!(events.count(), 1, "{reason} is reported once");
    }
}

#[test]
fn an_observed_service_is_not_changed() {
    let mut case = Case::new();
    case.service.spec.observe_only = true;
    case.verdict = idle();
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
    assert!(case.private.is_none());
    is(&case.condition("WouldSleep"), "True", "Idle");
    case.verdict = busy();
    case.settle();
    is(&case.condition("WouldSleep"), "False", "NotIdle");
}

#[test]
fn a_longer_wait_replaces_an_impossible_proof() {
    let mut case = Case::new();
    case.proves = false;
    let public = case.public.as_mut().unwrap();
    public.spec.as_mut().unwrap().session_affinity = Some("ClientIP".to_owned());
    case.verdict = idle();
    case.settle();
    case.pass(29);
    case.settle();
    assert_eq!(case.status().hand_off.unwrap().proved, None);
    case.pass(1);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    is(
        &case.condition("Unprovable"),
        "True",
        "RoutingNotVerifiable",
    );
}

#[test]
fn resolvers_that_count_requests_stay_in_the_path() {
    let mut case = Case::new();
    case.service.spec.triggers[0].kind = TriggerKind::Requests;
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(3), 1));
    is(&case.ready(), "True", "InPath");
    case.verdict = idle();
    // One resolver beside three pods receives a fourth of all connections.
    case.pass(4 * 600);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    case.verdict = busy();
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 1));
}

/// Whether it falls asleep `quiet` seconds after the last request to resolvers.
fn sleeps_after(quiet: i64, change: impl Fn(&mut Case)) -> bool {
    let mut case = Case::new();
    case.service.spec.triggers[0].kind = TriggerKind::Requests;
    change(&mut case);
    let asked = case.now;
    case.verdict = Verdict::Busy(Reason::new("Busy", "asked").with_last_request_at(asked));
    case.settle();
    case.pass(quiet);
    case.verdict = Verdict::Idle(Reason::new("Idle", "quiet").with_last_request_at(asked));
    case.settle();
    case.pass(5);
    case.settle();
    case.replicas == Some(0)
}

#[test]
fn the_cooldown_grows_with_the_share_of_pods() {
    for (resolvers, pods, factor) in [(1, 1, 2), (1, 3, 4), (2, 2, 2), (2, 6, 4)] {
        let change = |case: &mut Case| {
            let number = |number| ResolverEndpoint {
                address: std::net::Ipv4Addr::new(10, 0, 0, number).into(),
                ..resolver()
            };
            case.resolvers = (1..=resolvers).map(number).collect();
            case.ready_pods = pods;
        };
        let needed = 600 * factor;
        assert!(!sleeps_after(needed - 10, change), "{resolvers} {pods}");
        assert!(sleeps_after(needed, change), "{resolvers} {pods}");
    }
    // A Prometheus trigger counts all requests.
    let both = |case: &mut Case| {
        let prometheus = Case::new().service.spec.triggers[0].clone();
        case.service.spec.triggers.push(prometheus);
    };
    assert!(sleeps_after(600, both));
}

#[test]
fn session_affinity_makes_counted_requests_no_evidence() {
    let sticks = |case: &mut Case| {
        let spec = case.public.as_mut().unwrap().spec.as_mut().unwrap();
        spec.session_affinity = Some("ClientIP".to_owned());
    };
    assert!(!sleeps_after(100_000, sticks));
}

#[test]
fn a_node_local_service_is_kept_awake() {
    type Change = fn(&mut ServiceSpec);
    let policies: [(&str, Change); 2] = [
        ("internalTrafficPolicy", |spec| {
            spec.internal_traffic_policy = Some("Local".to_owned());
        }),
        ("externalTrafficPolicy", |spec| {
            spec.type_ = Some("LoadBalancer".to_owned());
            spec.external_traffic_policy = Some("Local".to_owned());
        }),
    ];
    for (field, change) in policies {
        let mut case = Case::new();
        change(case.public.as_mut().unwrap().spec.as_mut().unwrap());
        case.verdict = idle();
        case.settle();
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(3), "{field}");
        is(&case.condition("Stalled"), "True", "ServiceNodeLocal");
        let conditions = case.status().conditions;
        let stalled = conditions.iter().find(|it| it.type_ == "Stalled");
        assert!(stalled.unwrap().message.starts_with(field));
        // A sleeping one is woken.
        let mut case = Case::asleep();
        change(case.public.as_mut().unwrap().spec.as_mut().unwrap());
        case.settle();
        assert_eq!(case.replicas, Some(2), "{field}");
    }
}

#[test]
fn a_headless_service_is_kept_awake_without_resolvers() {
    let headless = |case: &mut Case| {
        let spec = case.public.as_mut().unwrap().spec.as_mut().unwrap();
        spec.cluster_ip = Some("None".to_owned());
    };
    for kind in [TriggerKind::Prometheus, TriggerKind::Requests] {
        let mut case = Case::new();
        headless(&mut case);
        case.service.spec.triggers[0].kind = kind;
        case.verdict = idle();
        case.pass(100_000);
        case.settle();
        assert_eq!((case.replicas, case.slices.len()), (Some(3), 0));
        is(&case.condition("Stalled"), "True", "ServiceHeadless");
        is(&case.condition("Unprovable"), "", "");
    }
    // A sleeping one is woken, and resolvers leave once pods are ready.
    let mut case = Case::asleep();
    headless(&mut case);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 1));
    assert_eq!(case.status().last_wake.unwrap().cause, "ServiceHeadless");
    case.ready_pods = 2;
    for _ in 0..3 {
        case.settle();
        case.pass(30);
    }
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
    is(&case.condition("Stalled"), "True", "ServiceHeadless");
    // The same for a service of KubeElasti, whose slice no watch shows.
    let mut case = Case::asleep();
    headless(&mut case);
    case.slices.clear();
    case.settle();
    assert_eq!(case.replicas, Some(2));
    case.ready_pods = 2;
    case.settle();
    assert_eq!(case.status().mode, Some(Mode::Serve));
    assert_eq!(case.status().hand_off, None);
    // A target that a user scaled to zero gets no resolvers.
    let mut case = Case::new();
    headless(&mut case);
    (case.replicas, case.ready_pods) = (Some(0), 0);
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
}

#[test]
fn keda_is_paused_during_sleep_and_a_users_pause_stays() {
    let found = |paused, by_us| Keda::Found {
        metadata: Box::new(ObjectMeta::default()),
        paused,
        by_us,
    };
    for (before, asleep, awake) in [
        (found(false, false), found(true, true), found(false, false)),
        (found(true, false), found(true, false), found(true, false)),
    ] {
        let mut case = Case::new();
        case.keda = before;
        case.verdict = idle();
        case.settle();
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(0));
        assert_eq!(case.keda, asleep);
        case.verdict = busy();
        case.settle();
        assert_eq!(case.keda, awake);
    }
}

#[test]
fn a_target_scaled_to_zero_by_a_user_sleeps_and_wakes() {
    let mut case = Case::new();
    case.settle();
    (case.replicas, case.ready_pods) = (Some(0), 0);
    case.verdict = unknown();
    case.settle();
    assert_eq!(case.slices.len(), 1);
    is(&case.ready(), "True", "Asleep");
    case.verdict = busy();
    case.settle();
    assert_eq!(case.replicas, Some(2));
}

#[test]
fn repeated_scale_ups_after_sleep_are_a_conflict() {
    let mut case = Case::asleep();
    let mut scale_back = |expected: &str| {
        case.settle();
        case.replicas = Some(3);
        case.ready_pods = 3;
        case.settle();
        assert_eq!(case.status().last_wake.unwrap().cause, "Scaled");
        assert_eq!(case.condition("Conflict").0, expected);
        // It sleeps again.
        case.pass(600);
        case.settle();
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(0));
        case.pass(30);
    };
    scale_back("");
    scale_back("True");
    scale_back("True");
}

#[test]
fn a_sleep_request_overrides_busy_triggers() {
    let mut case = Case::new();
    case.settle();
    case.pass(1);
    case.annotate(SLEEP, &case.now.to_string());
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    // A later wake request wins, and the former sleep request has no more effect.
    case.pass(1);
    case.annotate(WAKE, &case.now.to_string());
    case.settle();
    case.ready_pods = 1;
    case.settle();
    assert_eq!((case.replicas, case.slices.len()), (Some(2), 0));
}

#[test]
fn a_request_for_a_future_time_is_carried_out_then() {
    let mut case = Case::asleep();
    let later = case.now + SignedDuration::from_secs(60);
    case.annotate(WAKE, &later.to_string());
    let steps = case.settle();
    assert_eq!(case.replicas, Some(0));
    assert_eq!(
        steps[0].requeue_after.map(|again| again.as_secs()),
        Some(60)
    );
    case.pass(60);
    case.settle();
    assert_eq!(case.replicas, Some(2));
}
