//! A controller that is wrong on purpose. If the trial finds nothing wrong with it, the trial is
//! blind.

use std::{collections::BTreeMap, convert::Infallible};

use anyhow::Result;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use neap_kit::{
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::WatchesStopped,
};
use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    child_process::{play, play_without_faults},
    judge::Oracle,
    plan::parse,
};
use serde_json::json;

const PLANS: &str = "
plan the-canary-dies
workload canary seed 7
on write.before verb=create kind=configmaps name=bird #1 for careless do fail 500

plan nothing-happens
workload canary seed 7
on write.before verb=create kind=configmaps name=bird #99 for careless do fail 500
";

/// Whether a plan that must fail fails, and one whose fault never strikes is void.
pub(crate) fn is_caught(template: &ClusterTemplate, seed: u64) -> Result<bool> {
    let workload = workload();
    let plans = parse(PLANS)?;
    let outcomes = play_without_faults(&workload, seed, template)
        .and_then(|(reference, _, _)| play(&workload, seed, &plans, &reference, template));
    let outcomes = outcomes.map_err(anyhow::Error::msg)?;
    let dead = outcomes[0].violations.iter();
    let dead = dead.map(|violation| violation.oracle);
    Ok(dead.eq([Oracle::EndState, Oracle::Counts]) && !outcomes[1].idle.is_empty())
}

fn workload() -> Workload {
    let cage = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cage", "namespace": "default"},
    });
    Workload::new("canary")
        .actor("careless", |context| Ok(vec![careless(context)?]))
        .step("bring a cage", [UserRequest::Create(cage)])
}

/// Creates a bird next to a cage, and ignores whether that succeeded.
fn careless(context: &Context) -> Result<Component, WatchesStopped> {
    let cages = context.cache::<ConfigMap>()?;
    let controller = context.controller(ControllerOptions::new("careless"));
    let enqueuer = controller.enqueuer();
    let cage = Key::new("default", "cage");
    cages.subscribe(move |change| {
        if change.key() == cage {
            enqueuer.enqueue(cage.clone());
        }
    });
    let writer = context.writer("careless");
    let reconcile = move |_| {
        let writer = writer.clone();
        async move {
            let _ = writer.create(&bird()).await;
            Ok::<_, Infallible>(Outcome::Done)
        }
    };
    Ok(Component::new("careless", move |stop| async move {
        let known = async { cages.synced().await };
        controller.run_when(known, reconcile, stop).await;
    }))
}

fn bird() -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some("bird".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("sings".to_owned(), "yes".to_owned())])),
        ..ConfigMap::default()
    }
}
