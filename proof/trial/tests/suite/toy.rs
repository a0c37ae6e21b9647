//! A toy controller of one map, which does one thing in each reconcile.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{
    apply::{Error, Writer},
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    judge::{Oracle, Reference, Violation},
    plan::{Plan, parse},
    run::run,
};
use serde_json::{Value, json};

/// What a reconcile of the map does.
pub(crate) type ReconcileToy = fn(Toy, Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>>;

/// What a reconcile can use.
#[derive(Clone)]
pub(crate) struct Toy {
    pub(crate) context: Context,
    pub(crate) writer: Writer,
    pub(crate) maps: Cache<ConfigMap>,
}

/// Reconciles the map `toy` of a namespace every second.
pub(crate) fn components(
    context: &Context,
    reconcile_toy: ReconcileToy,
    own_write_timeout: Duration,
) -> Result<Vec<Component>, WatchesStopped> {
    let maps: Cache<ConfigMap> = context.cache()?;
    let controller = context.controller(ControllerOptions {
        own_write_timeout,
        ..ControllerOptions::new("toy")
    });
    let enqueuer = controller.enqueuer();
    maps.subscribe(move |change| {
        if change.key().name() == "toy" {
            enqueuer.enqueue(change.key());
        }
    });
    let toy = Toy {
        context: context.clone(),
        writer: context.writer("toy"),
        maps: maps.clone(),
    };
    let reconcile = move |key: Key| {
        let toy = toy.clone();
        async move {
            let Some(map) = toy.maps.get(&key) else {
                return Ok::<_, Error>(Outcome::Gone);
            };
            reconcile_toy(toy, map).await?;
            Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
        }
    };
    Ok(vec![Component::new("toy", move |stop| async move {
        let known = async move { maps.synced().await };
        controller.run_when(known, reconcile, stop).await;
    })])
}

pub(crate) const MINUTE: Duration = Duration::from_mins(1);
const MAP: &str = "/api/v1/namespaces/default/configmaps/toy";

pub(crate) fn workload(reconcile_toy: ReconcileToy, own_write_timeout: Duration) -> Workload {
    Workload::new("toy")
        .actor("controller", move |context| {
            components(context, reconcile_toy, own_write_timeout)
        })
        .step("create", [UserRequest::Create(map("toy"))])
        .step(
            "change",
            [UserRequest::Patch(MAP, json!({"data": {"a": "b"}}))],
        )
}

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

pub(crate) fn typed(value: Value) -> ConfigMap {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn template() -> ClusterTemplate {
    ClusterTemplate::prepare_blocking().unwrap()
}

/// The violations of a run with `rule`, or of a run without faults if it is empty.
pub(crate) fn judged(workload: &Workload, rule: &str) -> Vec<Violation> {
    let template = template();
    let calm = run(workload, &Plan::without_faults("toy", 7), &template).unwrap();
    let (reference, odd) = Reference::new(&calm);
    if rule.is_empty() {
        return odd;
    }
    let plan = &parse(&format!("plan p\nworkload toy seed 7\n{rule}\n")).unwrap()[0];
    let record = run(workload, plan, &template).unwrap();
    assert!(record.idle.is_empty(), "{plan} never struck");
    reference.judge(&record)
}

/// The texts of the violations of `oracle`.
pub(crate) fn texts(found: &[Violation], oracle: Oracle) -> Vec<&str> {
    let texts = found.iter().filter(|found| found.oracle == oracle);
    texts.map(|found| found.text.as_str()).collect()
}
