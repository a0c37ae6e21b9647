//! A controller of thirty lines under trial, and one that is wrong.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};
use neap_trial::{
    Deed, Ground, Workload,
    generate::{places, plan, single},
    judge::{Oracle, Reference},
    plan::{Plan, parse},
    run::{Record, run},
};
use serde_json::{Value, json};

const FAN: &str = "/api/v1/namespaces/default/configmaps/fan";

/// Whether a controller looks before it leaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Children have names that follow from what they are for.
    Named,
    /// They are called by how many there were when the process began: a mistake.
    Counted,
}

/// Keeps as many children of `fan` as it says.
fn fanout(site: &Site, care: Care) -> Result<Vec<Service>, Ended> {
    let maps: Cache<ConfigMap> = site.all()?;
    let controller = site.controller(Options::new("fanout"));
    let trigger = controller.trigger();
    maps.follow(move |_| trigger.changed(Key::new("default", "fan")));
    let (hand, known, clock) = (site.hand("fanout"), maps.clone(), site.clock);
    let reconcile = move |key: Key| {
        let (maps, hand) = (maps.clone(), hand.clone());
        async move {
            let Some(fan) = maps.get(&key) else {
                return Ok::<_, Error>(Outcome::Gone);
            };
            let count = fan
                .data
                .as_ref()
                .and_then(|data| data["count"].parse().ok());
            let count: usize = count.unwrap_or_default();
            let children = maps.list("default").into_iter();
            let children: Vec<_> = children.filter(|map| map.name_any() != "fan").collect();
            for number in 0..count {
                let name = match care {
                    Care::Named => format!("fan-{number}"),
                    Care::Counted if number < children.len() => continue,
                    Care::Counted => format!("fan-{number}-{}", clock.uptime().as_millis()),
                };
                if !children.iter().any(|child| child.name_any() == name)
                    && let Some(made) = hand.create(&child(&fan, &name)).await?
                {
                    let version = made.resource_version().unwrap_or_default();
                    let _ = maps
                        .shows(&version, std::time::Duration::from_secs(5))
                        .await;
                }
            }
            for surplus in children.iter().skip(count) {
                hand.remove::<ConfigMap>(surplus, None).await?;
            }
            Ok(Outcome::Settled)
        }
    };
    Ok(vec![Service::new("fanout", move |stop| async move {
        let known = async move { known.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

fn child(fan: &ConfigMap, name: &str) -> ConfigMap {
    let object = json!({"metadata": {
        "name": name, "namespace": "default", "ownerReferences": [fan.controller_owner_ref(&())],
    }});
    serde_json::from_value(object).unwrap()
}

fn fan(count: u32) -> Value {
    json!({"data": {"count": count.to_string()}})
}

fn workload(care: Care) -> Workload {
    let mut made = fan(3);
    made["apiVersion"] = "v1".into();
    made["kind"] = "ConfigMap".into();
    made["metadata"] = json!({"name": "fan", "namespace": "default"});
    Workload::new("fanout")
        .actor("controller", move |site| fanout(site, care))
        .step("create", [Deed::Create(made)])
        .step("scale up", [Deed::Patch(FAN, fan(5))])
        .step("scale down", [Deed::Patch(FAN, fan(1))])
        .step("delete", [Deed::Delete(FAN)])
}

/// The server that all runs begin with.
fn ground() -> Arc<Ground> {
    Arc::new(Ground::ready().unwrap())
}

fn play(workload: &Workload, plan: &Plan, ground: &Ground) -> Record {
    run(workload, plan, ground).unwrap()
}

/// Every so manieth plan of one fault, and what went wrong under it.
fn tried(care: Care, every: usize) -> Vec<(Plan, Vec<Oracle>)> {
    let (workload, ground) = (workload(care), ground());
    let calm = play(&workload, &Plan::calm("fanout", 7), &ground);
    let (reference, odd) = Reference::new(&calm);
    assert_eq!(odd, [], "nothing is wrong when nothing goes wrong");
    let rules = single(&places(&calm.entries));
    assert!(rules.len() > 100, "{} faults", rules.len());
    let chosen = rules.into_iter().step_by(every);
    let plans = chosen.map(|rule| plan("fanout", 7, vec![rule]));
    plans
        .map(|plan| {
            let record = play(&workload, &plan, &ground);
            assert!(record.idle.is_empty(), "{plan}");
            let found = reference.judge(&record);
            (plan, found.iter().map(|found| found.oracle).collect())
        })
        .collect()
}

#[test]
fn a_careful_controller_stands_every_fault() {
    let bad: Vec<_> = tried(Care::Named, 5)
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_careless_one_is_found_out() {
    let found = tried(Care::Counted, 5);
    let bad = found.iter().filter(|(_, found)| !found.is_empty()).count();
    assert!(bad > 0, "of {} plans", found.len());
}

#[test]
fn a_fault_that_never_strikes_makes_a_run_void() {
    let text =
        "plan never\nworkload fanout seed 7\non write.before kind=secrets for any do crash\n";
    let plan = &parse(text).unwrap()[0];
    let record = play(&workload(Care::Named), plan, &ground());
    assert_eq!(record.idle, [0]);
}
