//! What never happens, whatever the facts are and however they change.

use proptest::prelude::*;

use super::*;
use crate::{
    api::{Mode, Towards},
    service::facts::{SLEEP, WAKE},
};

/// Something that happens to a service.
#[derive(Debug, Clone)]
enum News {
    Verdict(u8),
    Pods(usize),
    Replicas(i32),
    Resolvers(bool),
    Off(bool),
    Proves(bool),
    Slices,
    Wake,
    Sleep,
    Passes(i64),
    Deleted,
    Affinity(bool),
    ObserveOnly(bool),
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        4 => (0..3_u8).prop_map(News::Verdict),
        3 => (0..3_usize).prop_map(News::Pods),
        1 => (0..4).prop_map(News::Replicas),
        1 => any::<bool>().prop_map(News::Resolvers),
        1 => any::<bool>().prop_map(News::Off),
        2 => any::<bool>().prop_map(News::Proves),
        1 => Just(News::Slices),
        1 => Just(News::Wake),
        1 => Just(News::Sleep),
        6 => prop_oneof![Just(1), Just(5), Just(30), Just(130), Just(900)].prop_map(News::Passes),
        1 => Just(News::Deleted),
        1 => any::<bool>().prop_map(News::Affinity),
        1 => any::<bool>().prop_map(News::ObserveOnly),
    ]
}

fn happen(case: &mut Case, news: &News) {
    match news {
        News::Verdict(which) => {
            case.verdict = [idle(), busy(), unknown()][usize::from(*which)].clone();
        }
        News::Pods(ready) => case.ready_pods = *ready,
        News::Replicas(replicas) => case.replicas = Some(*replicas),
        News::Resolvers(there) => case.resolvers = there.then(resolver).into_iter().collect(),
        News::Off(off) => case.switches.off = *off,
        News::Proves(proves) => {
            case.proves = *proves;
            case.proof = None;
        }
        News::Slices => case.slices.clear(),
        News::Wake => case.annotate(WAKE, &case.now.to_string()),
        News::Sleep => case.annotate(SLEEP, &case.now.to_string()),
        News::Passes(seconds) => case.pass(*seconds),
        News::Deleted => {
            let now = serde_json::json!(case.now);
            let deletion = &mut case.service.metadata.deletion_timestamp;
            if deletion.is_none() {
                *deletion = serde_json::from_value(now).unwrap();
            }
        }
        News::Affinity(on) => {
            let public = case.public.as_mut().unwrap();
            let affinity = on.then(|| "ClientIP".to_owned());
            public.spec.as_mut().unwrap().session_affinity = affinity;
        }
        News::ObserveOnly(only) => case.service.spec.observe_only = *only,
    }
}

/// Fails if `decision` does to `case` what is never done.
fn check(case: &Case, decision: &Decision) -> Result<(), TestCaseError> {
    let before = case.status();
    let proved = |towards| {
        let hand_off = before.hand_off.as_ref();
        hand_off.is_some_and(|it| it.towards == towards && it.proved.is_some())
    };
    if decision.scale.is_some_and(|scale| scale.replicas == 0) {
        prop_assert!(proved(Towards::Resolvers), "zero without a proof");
        prop_assert!(!case.resolvers.is_empty(), "zero without resolvers");
        prop_assert!(decision.scale.is_some_and(|scale| scale.unchanged));
        prop_assert_eq!(before.replicas_before, case.replicas);
        prop_assert!(!case.slices.is_empty());
        prop_assert!(!case.service.spec.observe_only);
    }
    if decision.slices == Slices::Remove && !case.slices.is_empty() {
        let leaving = decision.finalizer == Finalizer::Remove;
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
        prop_assert!(decision.slices == Slices::Remove || case.slices.is_empty());
    }
    prop_assert!(status.asleep_since.is_none() || status.hand_off.is_none());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nobody_is_lost_whatever_happens(all in proptest::collection::vec(news(), 1..40)) {
        let mut case = Case::new();
        for news in &all {
            happen(&mut case, news);
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
                prop_assert!(steps < 12, "it never settles after {:?}: {:#?}", news, decision);
            }
        }
    }

    #[test]
    fn whoever_asks_is_answered_in_the_end(all in proptest::collection::vec(news(), 1..30)) {
        let mut case = Case::new();
        for news in all.iter().filter(|news| !matches!(news, News::Deleted)) {
            happen(&mut case, news);
            case.settle();
        }
        // Somebody asks, pods come up as they are told to, and the data plane follows.
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
