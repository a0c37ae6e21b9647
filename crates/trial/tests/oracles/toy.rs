//! A controller of one map: whatever is asked of it is done once for each look.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{
    apply::{Error, Hand},
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};
use neap_trial::{
    Deed, Ground, Workload,
    judge::{Oracle, Reference, Violation},
    plan::{Plan, parse},
    run::run,
};
use serde_json::{Value, json};

/// What a look at the map does.
pub(crate) type Look = fn(Toy, Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>>;

/// What a look has at hand.
#[derive(Clone)]
pub(crate) struct Toy {
    pub(crate) site: Site,
    pub(crate) hand: Hand,
    pub(crate) maps: Cache<ConfigMap>,
}

/// Looks at the map `toy` of a namespace every second, waiting so long for what it wrote.
pub(crate) fn service(site: &Site, look: Look, echo: Duration) -> Result<Vec<Service>, Ended> {
    let maps: Cache<ConfigMap> = site.all()?;
    let controller = site.controller(Options {
        echo,
        ..Options::new("toy")
    });
    let trigger = controller.trigger();
    maps.follow(move |change| {
        if change.key().name() == "toy" {
            trigger.changed(change.key());
        }
    });
    let toy = Toy {
        site: site.clone(),
        hand: site.hand("toy"),
        maps: maps.clone(),
    };
    let reconcile = move |key: Key| {
        let toy = toy.clone();
        async move {
            let Some(map) = toy.maps.get(&key) else {
                return Ok::<_, Error>(Outcome::Gone);
            };
            look(toy, map).await?;
            Ok(Outcome::Again(Duration::from_secs(1)))
        }
    };
    Ok(vec![Service::new("toy", move |stop| async move {
        let known = async move { maps.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
const MAP: &str = "/api/v1/namespaces/default/configmaps/toy";

pub(crate) fn workload(look: Look, echo: Duration) -> Workload {
    Workload::new("toy")
        .actor("controller", move |site| service(site, look, echo))
        .step("create", [Deed::Create(map("toy"))])
        .step("change", [Deed::Patch(MAP, json!({"data": {"a": "b"}}))])
}

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

pub(crate) fn typed(value: Value) -> ConfigMap {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn ground() -> Ground {
    Ground::ready().unwrap()
}

/// What is wrong with a run in which `rule` strikes, or nothing if it is empty.
pub(crate) fn judged(workload: &Workload, rule: &str) -> Vec<Violation> {
    let ground = ground();
    let calm = run(workload, &Plan::calm("toy", 7), &ground).unwrap();
    let (reference, odd) = Reference::new(&calm);
    if rule.is_empty() {
        return odd;
    }
    let plan = &parse(&format!("plan p\nworkload toy seed 7\n{rule}\n")).unwrap()[0];
    let record = run(workload, plan, &ground).unwrap();
    assert!(record.idle.is_empty(), "{plan} never struck");
    reference.judge(&record)
}

/// What `oracle` says of it.
pub(crate) fn said(found: &[Violation], oracle: Oracle) -> Vec<&str> {
    let said = found.iter().filter(|found| found.oracle == oracle);
    said.map(|found| found.text.as_str()).collect()
}
