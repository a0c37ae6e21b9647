//! Every map has a shadow, and nothing that can go wrong keeps it from having one.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use neap_kit::{
    apply::{Error, Hand},
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};
use neap_trial::{Deed, Workload, proof};
use serde_json::json;

/// The controller under trial: keeps a copy of every ConfigMap that nobody owns.
fn shadows(site: &Site) -> Result<Vec<Service>, Ended> {
    let maps: Cache<ConfigMap> = site.all()?;
    let controller = site.controller(Options::new("shadows"));
    let trigger = controller.trigger();
    maps.follow(move |change| {
        let key = change.key();
        let of = key.name().trim_end_matches("-shadow");
        trigger.changed(Key::new(key.namespace(), of));
    });
    let (hand, known) = (site.hand("shadows"), maps.clone());
    let reconcile = move |key| look(maps.clone(), hand.clone(), key);
    Ok(vec![Service::new("shadows", move |stop| async move {
        let known = async move { known.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

async fn look(maps: Cache<ConfigMap>, hand: Hand, key: Key) -> Result<Outcome, Error> {
    let Some(map) = maps.get(&key) else {
        return Ok(Outcome::Gone);
    };
    let name = format!("{}-shadow", key.name());
    let data = map.data.clone();
    match maps.get(&Key::new(key.namespace(), &name)) {
        Some(shadow) if shadow.data == data => {}
        Some(shadow) => {
            let shadow = ConfigMap::clone(&shadow);
            hand.replace(&ConfigMap { data, ..shadow }).await?;
        }
        None => {
            // A cache that is behind shows maps that are gone; nothing is made for those.
            hand.confirm(&*map).await?;
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
            if hand.create(&shadow).await?.is_none() {
                return Ok(Outcome::Again(Duration::from_secs(1)));
            }
        }
    }
    Ok(Outcome::Settled)
}

/// The trial: who works, what users do, and every fault that can strike meanwhile.
#[test]
fn shadows_stand_every_fault() -> Result<(), proof::Failure> {
    const MAP: &str = "/api/v1/namespaces/default/configmaps/tree";
    let tree = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "tree", "namespace": "default"}, "data": {"height": "1"},
    });
    let grown = json!({"data": {"height": "2"}});
    let workload = Workload::new("shadows")
        .actor("controller", shadows)
        .step("create", [Deed::Create(tree)])
        .step("change", [Deed::Patch(MAP, grown)])
        .step("delete", [Deed::Delete(MAP)]);
    let faults = proof::every_fault(&workload)?;
    assert!(faults > 50, "{faults} faults");
    Ok(())
}
