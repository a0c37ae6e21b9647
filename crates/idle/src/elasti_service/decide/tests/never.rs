//! Invariants over random sequences of events.

use proptest::prelude::*;

use super::*;
use crate::api::{
    Mode, Towards,
    annotations::{SLEEP, WAKE},
};

/// An event.
#[derive(Debug, Clone)]
enum ServiceEvent {
    Verdict(u8),
    Pods(usize),
    Replicas(i32),
    Resolvers(bool),
    Off(bool),
    Proves(bool),
    SliceChange,
    Wake,
    Sleep,
    Passes(i64),
    Deleted,
    Affinity(bool),
    ObserveOnly(bool),
}

fn event() -> impl Strategy<Value = ServiceEvent> {
    prop_oneof![
        4 => (0..3_u8).prop_map(ServiceEvent::Verdict),
        3 => (0..3_usize).prop_map(ServiceEvent::Pods),
        1 => (0..4).prop_map(ServiceEvent::Replicas),
        1 => any::<bool>().prop_map(ServiceEvent::Resolvers),
        1 => any::<bool>().prop_map(ServiceEvent::Off),
        2 => any::<bool>().prop_map(ServiceEvent::Proves),
        1 => Just(ServiceEvent::SliceChange),
        1 => Just(ServiceEvent::Wake),
        1 => Just(ServiceEvent::Sleep),
        6 => prop_oneof![Just(1), Just(5), Just(30), Just(130), Just(900)].prop_map(ServiceEvent::Passes),
        1 => Just(ServiceEvent::Deleted),
        1 => any::<bool>().prop_map(ServiceEvent::Affinity),
        1 => any::<bool>().prop_map(ServiceEvent::ObserveOnly),
    ]
}

fn apply_event(case: &mut Case, event: &ServiceEvent) {
    match event {
        ServiceEvent::Verdict(which) => {
            case.verdict = [idle(), busy(), unknown()][usize::from(*which)].clone();
        }
        ServiceEvent::Pods(ready) => case.ready_pods = *ready,
        ServiceEvent::Replicas(replicas) => case.replicas = Some(*replicas),
        ServiceEvent::Resolvers(there) => {
            case.resolvers = there.then(resolver).into_iter().collect();
        }
        ServiceEvent::Off(off) => case.switches.off = *off,
        ServiceEvent::Proves(proves) => {
            case.proves = *proves;
            case.proof = None;
        }
        ServiceEvent::SliceChange => case.slices.clear(),
        ServiceEvent::Wake => case.annotate(WAKE, &case.now.to_string()),
        ServiceEvent::Sleep => case.annotate(SLEEP, &case.now.to_string()),
        ServiceEvent::Passes(seconds) => case.pass(*seconds),
        ServiceEvent::Deleted => {
            let now = serde_json::json!(case.now);
            let deletion = &mut case.service.metadata.deletion_timestamp;
            if deletion.is_none() {
                *deletion = serde_json::from_value(now).unwrap();
            }
        }
        ServiceEvent::Affinity(on) => {
            let public = case.public.as_mut().unwrap();
            let affinity = on.then(|| "ClientIP".to_owned());
            public.spec.as_mut().unwrap().session_affinity = affinity;
        }
        ServiceEvent::ObserveOnly(only) => case.service.spec.observe_only = *only,
    }
}

/// Fails if `decision` violates an invariant.
fn check(case: &Case, decision: &Decision) -> Result<(), TestCaseError> {
    let before = case.status();
    let proved = |towards| {
        let hand_off = before.hand_off.as_ref();
        hand_off.is_some_and(|it| it.towards == towards && it.proved.is_some())
    };
    if decision.scales_to_zero() {
        prop_assert!(proved(Towards::Resolvers), "zero without a proof");
        prop_assert!(!case.resolvers.is_empty(), "zero without resolvers");
        prop_assert_eq!(decision.scale_of("web"), Some((0, true)));
        prop_assert_eq!(before.replicas_before, case.replicas);
        prop_assert!(!case.slices.is_empty());
        prop_assert!(!case.service.spec.observe_only);
    }
    if decision.deletes_slices() {
        let leaving = decision.removes_finalizer();
        let since = case.service.metadata.deletion_timestamp.as_ref();
        let waited = since.is_some_and(|since| case.now.duration_since(since.0).as_secs() >= 600);
        let may_leave = leaving && (case.ready_pods > 0 || waited);
        prop_assert!(
            proved(Towards::Pods) || may_leave,
            "resolvers gone without a proof"
        );
    }
    let status = &decision.status;
    if status.mode == Some(Mode::Serve) && before.mode == Some(Mode::Proxy) {
        prop_assert!(decision.deletes_slices() || case.slices.is_empty());
    }
    prop_assert!(status.asleep_since.is_none() || status.hand_off.is_none());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn invariants_hold_after_any_sequence_of_events(all in proptest::collection::vec(event(), 1..40)) {
        let mut case = Case::new();
        for event in &all {
            apply_event(&mut case, event);
            let mut steps = 0;
            loop {
                if case.gone {
                    return Ok(());
                }
                let decision = case.decide();
                check(&case, &decision)?;
                prop_assert_eq!(&decision, &case.decide(), "the same facts, the same decision");
                if !case.apply(&decision) {
                    break;
                }
                steps += 1;
                prop_assert!(steps < 12, "it never settles after {:?}: {:#?}", event, decision);
            }
        }
    }

    #[test]
    fn a_busy_service_is_awake_in_the_end(all in proptest::collection::vec(event(), 1..30)) {
        let mut case = Case::new();
        for event in all.iter().filter(|event| !matches!(event, ServiceEvent::Deleted)) {
            apply_event(&mut case, event);
            case.settle();
        }
        // Requests arrive, pods start as scaled, and the data plane follows.
        case.verdict = busy();
        case.proves = true;
        case.proof = None;
        case.resolvers = vec![resolver()];
        case.service.metadata.annotations = None;
        for _ in 0..4 {
            case.settle();
            case.ready_pods = usize::try_from(case.replicas.unwrap_or(0)).unwrap();
            case.pass(30);
        }
        case.settle();
        prop_assert!(case.replicas.is_some_and(|replicas| replicas > 0) || case.service.spec.observe_only);
        prop_assert!(case.slices.is_empty(), "resolvers are out of the path");
    }
}
