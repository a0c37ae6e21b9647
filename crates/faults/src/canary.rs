//! A controller that is wrong on purpose. A trial that finds nothing wrong with it sees nothing.

use std::{collections::BTreeMap, convert::Infallible};

use anyhow::Result;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use neap_kit::{
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::Ended,
};
use neap_trial::{
    Deed, Ground, Workload,
    apart::{calm, play},
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
pub(crate) fn dies(ground: &Ground, seed: u64) -> Result<bool> {
    let workload = workload();
    let plans = parse(PLANS)?;
    let outcomes = calm(&workload, seed, ground)
        .and_then(|(reference, _, _)| play(&workload, seed, &plans, &reference, ground));
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
        .actor("careless", |site| Ok(vec![careless(site)?]))
        .step("bring a cage", [Deed::Create(cage)])
}

/// Puts a bird beside a cage, and does not ask what came of it.
fn careless(site: &Site) -> Result<Service, Ended> {
    let cages = site.all::<ConfigMap>()?;
    let controller = site.controller(Options::new("careless"));
    let trigger = controller.trigger();
    let cage = Key::new("default", "cage");
    cages.follow(move |change| {
        if change.key() == cage {
            trigger.changed(cage.clone());
        }
    });
    let hand = site.hand("careless");
    let reconcile = move |_| {
        let hand = hand.clone();
        async move {
            let _ = hand.create(&bird()).await;
            Ok::<_, Infallible>(Outcome::Settled)
        }
    };
    Ok(Service::new("careless", move |stop| async move {
        let known = async { cages.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
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
