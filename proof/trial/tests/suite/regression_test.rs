//! What a developer gets when something fails: where the runs diverge, the differences in the final
//! state, and a test to paste. One such test is included here as it was printed.

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{apply::Error, key::Key};
use neap_trial::{
    Workload,
    difference::Difference,
    judge::Reference,
    plan::{Plan, parse},
    run::run,
    shrink::Case,
};

use crate::toy::{self, MINUTE, Toy, map, typed};

/// Keeps a copy.
fn careful(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    copy(toy).boxed()
}

/// Records that there is a copy before creating it.
fn careless(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        if toys.data.is_some() {
            return Ok(());
        }
        let data = Some(BTreeMap::from([("copied".to_owned(), "true".to_owned())]));
        let texts = ConfigMap {
            data,
            ..ConfigMap::clone(&toys)
        };
        toy.writer.replace(&texts).await?;
        copy(toy).await
    }
    .boxed()
}

async fn copy(toy: Toy) -> Result<(), Error> {
    if toy.maps.get(&Key::new("default", "copy")).is_some() {
        return Ok(());
    }
    toy.writer.create(&typed(map("copy"))).await.map(drop)
}

/// The workload by its name, as the test below requests it.
fn workload(_: &str) -> Workload {
    toy::workload(careful, MINUTE)
}

/// O1 step 1: /configmaps/default/copy is missing
#[test]
fn survives_a_crash_before_the_copy() -> Result<(), neap_trial::proof::Failure> {
    let plan = "\
plan a-crash-before-the-copy
workload toy seed 7
on write.before verb=create kind=configmaps #1 for controller do crash
";
    let steps = ["create"];
    neap_trial::proof::survives(&workload("toy"), &steps, plan)
}

const PLAN: &str = "\
plan a-crash-before-the-copy
workload toy seed 7
on write.before verb=create kind=configmaps #1 for controller do crash
";

#[test]
fn a_failing_plan_is_printed_as_a_test_that_can_be_pasted() {
    let mut workload = toy::workload(careless, MINUTE);
    workload.steps.truncate(1);
    let template = toy::template();
    let plan = parse(PLAN).unwrap().remove(0);
    let passing = run(&workload, &Plan::without_faults("toy", 7), &template).unwrap();
    let failing = run(&workload, &plan, &template).unwrap();
    let (reference, _) = Reference::new(&passing);
    let found = reference.judge(&failing).remove(0);
    let case = Case { workload, plan };
    let difference = Difference::of(&case, &found, (&reference, &passing.entries), &failing);
    assert!(
        include_str!("regression_test.rs").contains(&difference.test),
        "this is what is printed:\n{}",
        difference.test
    );
    // It fails as long as the defect is there.
    let texts = neap_trial::proof::survives(&case.workload, &["create"], PLAN).unwrap_err();
    assert!(texts.to_string().contains(&found.to_string()), "{texts}");
    let text = difference.to_string();
    for part in [
        "it diverges from a run without faults at",
        "controller sends: list configmaps",
        "copy is missing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_test_of_steps_that_are_not_there_or_of_faults_that_never_strike_fails() {
    let missing =
        neap_trial::proof::survives(&workload("toy"), &["create", "sing"], PLAN).unwrap_err();
    assert!(missing.to_string().contains("sing"), "{missing}");
    let never = PLAN.replace("configmaps", "secrets");
    let void = neap_trial::proof::survives(&workload("toy"), &["create"], &never).unwrap_err();
    assert!(void.to_string().contains("never struck"), "{void}");
    let texts = |plan: &str| {
        let failed = neap_trial::proof::survives(&workload("toy"), &["create"], plan);
        format!("{:?}", failed.unwrap_err())
    };
    assert_eq!(texts(""), "there is no plan in this text");
    let empty = "plan idle\nworkload toy seed 7\n";
    assert_eq!(texts(empty), "plan idle has no fault");
    let other = texts(&PLAN.replace("workload toy", "workload tot"));
    assert!(
        other.contains("is for workload tot, and this is toy"),
        "{other}"
    );
}
