//! What a developer is handed when something goes wrong: where the runs part, what is there
//! otherwise, and a test to paste. One such test is here, as it was handed out.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[expect(dead_code, reason = "others need more of it")]
#[path = "oracles/toy.rs"]
mod toy;

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
use toy::{MINUTE, Toy, map, typed};

/// Keeps a copy.
fn careful(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    copy(toy).boxed()
}

/// Says that there is one before it makes it.
fn careless(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        if toys.data.is_some() {
            return Ok(());
        }
        let data = Some(BTreeMap::from([("copied".to_owned(), "true".to_owned())]));
        let said = ConfigMap {
            data,
            ..ConfigMap::clone(&toys)
        };
        toy.hand.replace(&said).await?;
        copy(toy).await
    }
    .boxed()
}

async fn copy(toy: Toy) -> Result<(), Error> {
    if toy.maps.get(&Key::new("default", "copy")).is_some() {
        return Ok(());
    }
    toy.hand.create(&typed(map("copy"))).await.map(drop)
}

/// The workload under trial, by name, as the test below asks for it.
fn workload(_: &str) -> Workload {
    toy::workload(careful, MINUTE)
}

/// O1 step 1: /configmaps/default/copy is missing
#[test]
fn stands_a_crash_before_the_copy() -> Result<(), neap_trial::proof::Failure> {
    let plan = "\
plan a-crash-before-the-copy
workload toy seed 7
on write.before verb=create kind=configmaps #1 for controller do crash
";
    let steps = ["create"];
    neap_trial::proof::stands(&workload("toy"), &steps, plan)
}

const PLAN: &str = "\
plan a-crash-before-the-copy
workload toy seed 7
on write.before verb=create kind=configmaps #1 for controller do crash
";

#[test]
fn a_failing_plan_is_handed_out_as_a_test_that_can_be_pasted() {
    let mut workload = toy::workload(careless, MINUTE);
    workload.steps.truncate(1);
    let ground = toy::ground();
    let plan = parse(PLAN).unwrap().remove(0);
    let passing = run(&workload, &Plan::calm("toy", 7), &ground).unwrap();
    let failing = run(&workload, &plan, &ground).unwrap();
    let (reference, _) = Reference::new(&passing);
    let found = reference.judge(&failing).remove(0);
    let case = Case { workload, plan };
    let difference = Difference::of(&case, &found, (&reference, &passing.entries), &failing);
    assert!(
        include_str!("ready.rs").contains(&difference.test),
        "this is what is handed out:\n{}",
        difference.test
    );
    // As long as the mistake is there, it fails.
    let said = neap_trial::proof::stands(&case.workload, &["create"], PLAN).unwrap_err();
    assert!(said.to_string().contains(&found.to_string()), "{said}");
    let text = difference.to_string();
    for part in [
        "it parts from a run without faults where",
        "controller asks: list configmaps",
        "copy is missing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_test_of_steps_that_are_not_there_or_of_faults_that_never_strike_fails() {
    let missing =
        neap_trial::proof::stands(&workload("toy"), &["create", "sing"], PLAN).unwrap_err();
    assert!(missing.to_string().contains("sing"), "{missing}");
    let never = PLAN.replace("configmaps", "secrets");
    let void = neap_trial::proof::stands(&workload("toy"), &["create"], &never).unwrap_err();
    assert!(void.to_string().contains("never struck"), "{void}");
    let said = |plan: &str| {
        let failed = neap_trial::proof::stands(&workload("toy"), &["create"], plan);
        format!("{:?}", failed.unwrap_err())
    };
    assert_eq!(said(""), "there is no plan in this text");
    let empty = "plan idle\nworkload toy seed 7\n";
    assert_eq!(said(empty), "plan idle has no fault");
    let other = said(&PLAN.replace("workload toy", "workload tot"));
    assert!(
        other.contains("is for workload tot, and this is toy"),
        "{other}"
    );
}
