//! A controller of thirty lines under test, and one with a defect.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    generate::{fault_sites, plan, single},
    judge::{Oracle, Reference},
    plan::{Plan, parse},
    run::{RunRecord, run},
};
use serde_json::{Value, json};

const FAN: &str = "/api/v1/namespaces/default/configmaps/fan";

/// How a controller names the children it creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildNames {
    /// By their number.
    Stable,
    /// By their number and the uptime of the process: a defect.
    FromUptime,
}

/// Keeps as many children of `fan` as it declares.
fn fanout(context: &Context, names: ChildNames) -> Result<Vec<Component>, WatchesStopped> {
    let maps: Cache<ConfigMap> = context.cache()?;
    let controller = context.controller(ControllerOptions::new("fanout"));
    let enqueuer = controller.enqueuer();
    maps.subscribe(move |_| enqueuer.enqueue(Key::new("default", "fan")));
    let (writer, known, clock) = (context.writer("fanout"), maps.clone(), context.clock);
    let reconcile = move |key: Key| {
        let (maps, writer) = (maps.clone(), writer.clone());
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
                let name = match names {
                    ChildNames::Stable => format!("fan-{number}"),
                    ChildNames::FromUptime if number < children.len() => continue,
                    ChildNames::FromUptime => {
                        format!("fan-{number}-{}", clock.uptime().as_millis())
                    }
                };
                if !children.iter().any(|child| child.name_any() == name)
                    && let Some(made) = writer.create(&child(&fan, &name)).await?
                {
                    let version = made.resource_version().unwrap_or_default();
                    let _ = maps
                        .wait_for_version(&version, std::time::Duration::from_secs(5))
                        .await;
                }
            }
            for surplus in children.iter().skip(count) {
                writer.remove::<ConfigMap>(surplus, None).await?;
            }
            Ok(Outcome::Done)
        }
    };
    Ok(vec![Component::new("fanout", move |stop| async move {
        let known = async move { known.synced().await };
        controller.run_when(known, reconcile, stop).await;
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

fn workload(names: ChildNames) -> Workload {
    let mut made = fan(3);
    made["apiVersion"] = "v1".into();
    made["kind"] = "ConfigMap".into();
    made["metadata"] = json!({"name": "fan", "namespace": "default"});
    Workload::new("fanout")
        .actor("controller", move |context| fanout(context, names))
        .step("create", [UserRequest::Create(made)])
        .step("scale up", [UserRequest::Patch(FAN, fan(5))])
        .step("scale down", [UserRequest::Patch(FAN, fan(1))])
        .step("delete", [UserRequest::Delete(FAN)])
}

fn template() -> Arc<ClusterTemplate> {
    Arc::new(ClusterTemplate::prepare_blocking().unwrap())
}

fn play(workload: &Workload, plan: &Plan, template: &ClusterTemplate) -> RunRecord {
    run(workload, plan, template).unwrap()
}

/// Every `every`th plan with a single fault, and the oracles that it violates.
fn tried(names: ChildNames, every: usize) -> Vec<(Plan, Vec<Oracle>)> {
    let (workload, template) = (workload(names), template());
    let calm = play(&workload, &Plan::without_faults("fanout", 7), &template);
    let (reference, odd) = Reference::new(&calm);
    assert_eq!(odd, [], "nothing is wrong when nothing goes wrong");
    let rules = single(&fault_sites(&calm.entries));
    assert!(rules.len() > 100, "{} faults", rules.len());
    let chosen = rules.into_iter().step_by(every);
    let plans = chosen.map(|rule| plan("fanout", 7, vec![rule]));
    plans
        .map(|plan| {
            let record = play(&workload, &plan, &template);
            assert!(record.idle.is_empty(), "{plan}");
            let found = reference.judge(&record);
            (plan, found.iter().map(|found| found.oracle).collect())
        })
        .collect()
}

#[test]
fn a_controller_with_stable_names_survives_every_fault() {
    let bad: Vec<_> = tried(ChildNames::Stable, 5)
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_controller_with_unstable_names_is_reported() {
    let found = tried(ChildNames::FromUptime, 5);
    let bad = found.iter().filter(|(_, found)| !found.is_empty()).count();
    assert!(bad > 0, "of {} plans", found.len());
}

#[test]
fn a_fault_that_never_strikes_makes_a_run_void() {
    let text =
        "plan never\nworkload fanout seed 7\non write.before kind=secrets for any do crash\n";
    let plan = &parse(text).unwrap()[0];
    let record = play(&workload(ChildNames::Stable), plan, &template());
    assert_eq!(record.idle, [0]);
}
