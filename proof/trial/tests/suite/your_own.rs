//! Every ConfigMap has a shadow, under every fault.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use neap_kit::{
    apply::{Error, Writer},
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_trial::{UserRequest, Workload, proof};
use serde_json::json;

/// The controller under trial: keeps a copy of every ConfigMap without an owner.
fn shadows(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let maps: Cache<ConfigMap> = context.cache()?;
    let controller = context.controller(ControllerOptions::new("shadows"));
    let enqueuer = controller.enqueuer();
    maps.subscribe(move |change| {
        let key = change.key();
        let name = key.name().trim_end_matches("-shadow");
        enqueuer.enqueue(Key::new(key.namespace(), name));
    });
    let (writer, known) = (context.writer("shadows"), maps.clone());
    let reconcile = move |key| reconcile_shadow(maps.clone(), writer.clone(), key);
    Ok(vec![Component::new("shadows", move |stop| async move {
        let known = async move { known.synced().await };
        controller.run_when(known, reconcile, stop).await;
    })])
}

async fn reconcile_shadow(
    maps: Cache<ConfigMap>,
    writer: Writer,
    key: Key,
) -> Result<Outcome, Error> {
    let Some(map) = maps.get(&key) else {
        return Ok(Outcome::Gone);
    };
    let name = format!("{}-shadow", key.name());
    let data = map.data.clone();
    match maps.get(&Key::new(key.namespace(), &name)) {
        Some(shadow) if shadow.data == data => {}
        Some(shadow) => {
            let shadow = ConfigMap::clone(&shadow);
            writer.replace(&ConfigMap { data, ..shadow }).await?;
        }
        None => {
            // A stale cache shows deleted maps; no shadow is created for those.
            writer.confirm(&*map).await?;
            let metadata = ObjectMeta {
                name: Some(name),
                namespace: map.namespace(),
                owner_references: Some(map.controller_owner_ref(&()).into_iter().collect()),
                ..ObjectMeta::default()
            };
            let shadow = ConfigMap {
                metadata,
                data,
                ..ConfigMap::default()
            };
            if writer.create(&shadow).await?.is_none() {
                return Ok(Outcome::RequeueAfter(Duration::from_secs(1)));
            }
        }
    }
    Ok(Outcome::Done)
}

/// The trial: the processes, what users do, and every fault that can strike.
#[test]
fn shadows_survive_every_fault() -> Result<(), proof::Failure> {
    const MAP: &str = "/api/v1/namespaces/default/configmaps/tree";
    let tree = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "tree", "namespace": "default"}, "data": {"height": "1"},
    });
    let grown = json!({"data": {"height": "2"}});
    let workload = Workload::new("shadows")
        .actor("controller", shadows)
        .step("create", [UserRequest::Create(tree)])
        .step("change", [UserRequest::Patch(MAP, grown)])
        .step("delete", [UserRequest::Delete(MAP)]);
    let faults = proof::every_fault(&workload)?;
    assert!(faults > 50, "{faults} faults");
    Ok(())
}
