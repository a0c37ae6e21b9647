//! Workloads whose pods do not become ready: sleep never hides them.

use serde_json::json;

use super::*;
use crate::{
    account::{State, account},
    api::{
        NotReadyCause,
        annotations::{SLEEP, WAKE},
    },
    elasti_service::facts::PodProblem,
};

fn states(cause: NotReadyCause, definite: bool) -> PodStates {
    PodStates {
        ready: 0,
        unstable: false,
        problem: Some(PodProblem {
            cause,
            message: format!("pod web-1: {}", cause.for_clients()),
            definite,
        }),
    }
}

fn healthy(ready: usize) -> PodStates {
    PodStates {
        ready,
        ..PodStates::default()
    }
}

impl Case {
    /// A service that has never had a ready pod, idle for an hour.
    fn never_ready(cause: NotReadyCause, definite: bool) -> Self {
        let mut case = Self::new();
        case.ready_pods = 0;
        case.pods = Some(states(cause, definite));
        case.settle();
        case.verdict = idle();
        case.pass(3600);
        case.settle();
        case
    }

    /// A service that was woken by a request, and none of whose pods became ready since.
    fn badly_woken(cause: NotReadyCause, definite: bool) -> Self {
        let mut case = Self::asleep();
        case.verdict = busy();
        case.settle();
        assert_eq!(case.replicas, Some(2));
        case.pods = Some(states(cause, definite));
        case.pass(5);
        case.settle();
        case
    }

    fn state(&self) -> State {
        State::of(&self.service)
    }
}

/// Causes that pass by themselves at times, and those that do not.
const CAUSES: [(NotReadyCause, bool); 5] = [
    (NotReadyCause::CrashLoop, true),
    (NotReadyCause::ImagePull, true),
    (NotReadyCause::Unschedulable, false),
    (NotReadyCause::Probe, false),
    (NotReadyCause::NoPods, false),
];

#[test]
fn a_workload_that_was_never_ready_does_not_sleep_as_idle() {
    for (cause, definite) in CAUSES {
        let mut case = Case::never_ready(cause, definite);
        case.pass(100_000);
        case.settle();
        case.pass(10);
        case.settle();
        assert_eq!(case.replicas, Some(3), "{cause}");
        assert_eq!(case.status().asleep_since, None, "{cause}");
        assert_eq!(case.status().saved(case.now), 0, "{cause}");
        assert_eq!(case.state(), State::Failed, "{cause}");
        assert_eq!(case.ready(), ("False".to_owned(), "PodsFailing".to_owned()));
        let shown = account(&case.service, case.now);
        assert!(
            shown.why[0].contains(cause.for_clients()),
            "{:?}",
            shown.why
        );
        assert!(!shown.advice.is_empty());
        // It was not woken, so no wake has failed.
        assert_eq!(case.condition("WakeFailed"), Default::default());
    }
}

#[test]
fn a_failed_wake_is_a_condition_and_counts_as_no_saving() {
    for (cause, definite) in CAUSES {
        let mut case = Case::badly_woken(cause, definite);
        let saved = case.status().saved(case.now);
        if !definite {
            assert_eq!(case.state(), State::Waking, "{cause} may pass");
            let shown = account(&case.service, case.now);
            assert!(
                shown.why[0].contains(cause.for_clients()),
                "{:?}",
                shown.why
            );
            assert_eq!(case.condition("WakeFailed"), Default::default());
            case.pass(601);
            case.settle();
        }
        assert_eq!(case.state(), State::Failed, "{cause}");
        let failed = ("True".to_owned(), cause.as_str().to_owned());
        assert_eq!(case.condition("WakeFailed"), failed);
        assert_eq!(case.ready(), ("False".to_owned(), "WakeFailed".to_owned()));
        // Its triggers report no use, and it stays as it is.
        case.verdict = idle();
        case.pass(100_000);
        case.settle();
        case.pass(10);
        case.settle();
        assert_eq!(case.replicas, Some(2), "{cause}");
        assert_eq!(case.status().saved(case.now), saved, "{cause}");
        assert_eq!(case.settle().len(), 1, "{cause}: nothing is left to write");
        // Once a pod is ready, all is well again, and it may sleep.
        (case.ready_pods, case.pods) = (1, Some(healthy(1)));
        let steps = case.settle();
        assert_eq!(case.status().not_ready, None);
        assert_eq!(case.condition("WakeFailed").0, "False");
        let events = steps.iter().flat_map(|step| &step.events);
        assert_eq!(events.filter(|it| it.reason == "PodsReady").count(), 1);
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(0), "{cause}");
    }
}

#[test]
fn a_service_without_a_ready_pod_is_not_awake() {
    type Change = fn(&mut Case);
    let ways: [(&str, Change); 3] = [
        ("no resolver in the path", |_| {}),
        ("resolvers count", |case| {
            case.service.spec.triggers[0].kind = crate::api::TriggerKind::Requests;
        }),
        ("only observed", |case| {
            case.service.spec.observe_only = true;
        }),
    ];
    for (what, change) in ways {
        for pods in [None, Some(states(NotReadyCause::Starting, false))] {
            let mut case = Case::new();
            change(&mut case);
            (case.ready_pods, case.pods) = (0, pods);
            case.settle();
            let ready = ("False".to_owned(), "Waking".to_owned());
            assert_eq!(case.ready(), ready, "{what}");
            assert_eq!(case.state(), State::Waking, "{what}");
            // No object is made for one that is only observed, and the pods themselves show it.
            (case.ready_pods, case.pods) = (0, Some(healthy(1)));
            if what != "only observed" {
                case.ready_pods = 1;
            }
            case.settle();
            assert_eq!(case.ready().0, "True", "{what}");
        }
    }
}

#[test]
fn a_pod_that_crashes_between_being_ready_does_not_sleep_as_idle() {
    let mut case = Case::new();
    case.settle();
    let crashes = PodStates {
        ready: 1,
        unstable: true,
        ..states(NotReadyCause::CrashLoop, true)
    };
    (case.ready_pods, case.pods) = (1, Some(crashes));
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    case.pass(10);
    case.settle();
    assert_eq!(case.replicas, Some(3));
    assert_eq!(case.state(), State::Failed);
    // The last look is before the pods end: it may begin to crash meanwhile.
    let mut case = Case::new();
    case.verdict = idle();
    case.pass(3600);
    case.settle();
    case.pass(5);
    (case.ready_pods, case.pods) = (0, Some(states(NotReadyCause::CrashLoop, true)));
    case.settle();
    assert_eq!(case.replicas, Some(3));
}

#[test]
fn a_sleep_that_a_user_requests_is_carried_out_and_does_not_hide_the_failure() {
    let mut case = Case::never_ready(NotReadyCause::ImagePull, true);
    case.annotate(SLEEP, &case.now.to_string());
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    case.pass(3600);
    case.settle();
    assert_eq!(case.state(), State::Asleep);
    let shown = account(&case.service, case.now);
    assert!(
        shown.why[0]
            .starts_with("NotReady: it could not serve when it fell asleep: pod web-1: an image"),
        "{:?}",
        shown.why
    );
    assert_eq!(case.status().saved(case.now), 0);
    case.annotate(WAKE, &case.now.to_string());
    // Right after a wake its pods are not read.
    case.pods = None;
    case.settle();
    assert_eq!(case.replicas, Some(2));
    assert_eq!(case.status().saved_replica_seconds, Some(0));
    assert_eq!(case.status().not_ready, None, "the wake is another attempt");
}

#[test]
fn a_setting_bounds_how_long_a_failed_service_runs() {
    let mut case = Case::never_ready(NotReadyCause::ImagePull, true);
    case.timeouts.failed_sleep = Some(Duration::from_hours(2));
    case.settle();
    case.pass(10);
    case.settle();
    assert_eq!(case.replicas, Some(3), "its time is not over");
    case.pass(3600);
    case.settle();
    case.pass(5);
    case.settle();
    assert_eq!(case.replicas, Some(0));
    case.pass(3600);
    assert_eq!(case.status().saved(case.now), 0);
    assert!(case.status().not_ready.is_some_and(|it| it.failed));
}

#[test]
fn a_deadline_of_the_spec_bounds_how_long_a_start_may_take() {
    let mut case = Case::new();
    case.service.spec.deadline_seconds = Some(30);
    (case.ready_pods, case.pods) = (0, Some(states(NotReadyCause::Probe, false)));
    case.settle();
    case.pass(29);
    let steps = case.settle();
    assert_eq!(case.state(), State::Waking);
    assert_eq!(steps[0].requeue_after.map(|it| it.as_secs()), Some(1));
    case.pass(1);
    case.settle();
    assert_eq!(case.state(), State::Failed);
}

#[test]
fn details_that_a_kubelet_leaves_out_in_turn_stay() {
    let mut case = Case::never_ready(NotReadyCause::ImagePull, true);
    let before = case.status().not_ready.unwrap();
    let mut short = states(NotReadyCause::ImagePull, true);
    short.problem.as_mut().unwrap().message = "pod web-1: an image".to_owned();
    case.pods = Some(short);
    case.settle();
    assert_eq!(case.status().not_ready.unwrap(), before);
}

fn deleted(case: &mut Case) {
    let now = json!(case.now);
    case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
}

fn reports(steps: &[Decision]) -> Vec<String> {
    let events = steps.iter().flat_map(|step| &step.owner_events);
    let told = events.filter(|event| event.reason == "NotRestored");
    told.map(|event| event.message.clone()).collect()
}

#[test]
fn the_deletion_of_a_broken_service_ends_within_a_minute_and_reports_what_is_left() {
    for (cause, definite) in [
        (NotReadyCause::CrashLoop, true),
        (NotReadyCause::Probe, false),
    ] {
        let mut case = Case::asleep();
        deleted(&mut case);
        case.settle();
        assert_eq!((case.gone, case.replicas), (false, Some(3)));
        case.pods = Some(states(cause, definite));
        case.pass(if definite { 59 } else { 599 });
        case.settle();
        assert!(!case.gone, "{cause}: its time is not over");
        case.pass(1);
        let steps = case.settle();
        assert!(case.gone, "{cause}");
        let told = reports(&steps[..1]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("Deployment web has 3 replicas and no ready pod"),
            "{told:?}"
        );
        assert!(told[0].contains(cause.for_clients()), "{told:?}");
    }
}

#[test]
fn the_deletion_of_a_service_whose_target_may_not_be_scaled_ends_and_reports_it() {
    let mut case = Case::asleep();
    deleted(&mut case);
    let since = case.now;
    case.refusal = Some(Refusal {
        since,
        message: "scale is forbidden".to_owned(),
    });
    let decision = case.decide();
    assert_eq!(
        decision.scale_of("web"),
        Some((3, false)),
        "it is tried first"
    );
    case.pass(59);
    assert!(!case.decide().removes_finalizer());
    case.pass(1);
    let decision = case.decide();
    assert!(decision.removes_finalizer());
    assert_eq!(decision.scale_of("web"), None, "nothing else is written");
    let told = reports(&[decision]);
    assert!(told[0].contains("scale is forbidden"), "{told:?}");
    assert!(
        told[0].contains("Deployment web has 0 replicas"),
        "{told:?}"
    );
    // An operator that was away for long tries first.
    let mut case = Case::asleep();
    deleted(&mut case);
    case.pass(100_000);
    case.refusal = Some(Refusal {
        since: case.now,
        message: "scale is forbidden".to_owned(),
    });
    assert!(!case.decide().removes_finalizer());
}

#[test]
fn a_namespace_that_is_deleted_does_not_wait_for_pods() {
    let mut case = Case::asleep();
    deleted(&mut case);
    case.namespace_terminates = true;
    let decision = case.decide();
    assert!(decision.removes_finalizer());
    assert_eq!(decision.writes().count(), 1, "{decision:#?}");
    assert_eq!(decision.events, [], "no Event can be created there");
}

#[test]
fn the_estimate_of_the_next_sleep_is_that_of_the_decision() {
    let mut case = Case::new();
    case.settle();
    case.verdict = idle();
    let steps = case.settle();
    let left = steps.last().unwrap().requeue_after.unwrap();
    let after = case.status().sleeps_after.unwrap();
    let shown = after.duration_since(case.now).as_secs();
    assert_eq!(shown.unsigned_abs(), left.as_secs() + 1);
    let text = account(&case.service, case.now).why.join("\n");
    assert!(text.contains("it sleeps in 10m at the earliest"), "{text}");
    // Beside three pods, one resolver receives a fourth of the connections, so it takes four times as long.
    case.service.spec.triggers[0].kind = crate::api::TriggerKind::Requests;
    case.settle();
    let text = account(&case.service, case.now).why.join("\n");
    assert!(text.contains("it sleeps in 40m at the earliest"), "{text}");
    // A service that is in use has no estimate.
    case.verdict = busy();
    case.settle();
    assert_eq!(case.status().sleeps_after, None);
}

#[test]
fn a_service_in_use_has_at_least_the_replicas_that_it_wakes_to() {
    let mut case = Case::new();
    (case.replicas, case.ready_pods) = (Some(1), 1);
    let steps = case.settle();
    assert_eq!(case.replicas, Some(2));
    let scales = steps.iter().filter_map(|step| step.scale_of("web"));
    assert_eq!(scales.collect::<Vec<_>>(), [(2, true)]);
    // More are left alone, and so is a service that is not in use or only observed.
    for (replicas, verdict, observed) in [
        (3, busy(), false),
        (1, idle(), false),
        (1, unknown(), false),
        (1, busy(), true),
    ] {
        let mut case = Case::new();
        case.verdict = verdict;
        case.service.spec.observe_only = observed;
        (case.replicas, case.ready_pods) = (Some(replicas), 1);
        let scales = case.decide().scale_of("web");
        case.settle();
        assert_eq!((scales, case.replicas), (None, Some(replicas)));
    }
}
