//! Three processes of which one leads: whoever leads keeps as many maps as it is told, and marks each
//! with its term. In the history of all maps no term may come after a later one.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand},
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use neap_trial::{Deed, Workload, judge::FENCE};
use serde_json::{Value, json};

const LEASE: &str = "fan";
const HELD: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fan";
const FAN: &str = "/api/v1/namespaces/default/configmaps/fan";

pub(super) fn workload() -> Workload {
    Workload::new("lease")
        .without_poison("it keeps one object, whichever namespaces there are")
        .elected("one", LEASE, services)
        .elected("two", LEASE, services)
        .elected("three", LEASE, services)
        .step("create", [Deed::Create(fan())])
        .step("scale up", [change(&json!({"count": "6"}))])
        .step(
            "delete the lease and change the template",
            [Deed::Delete(HELD), change(&json!({"text": "new"}))],
        )
        // Whoever leads now has a later term than all before.
        .step("scale up again", [change(&json!({"count": "8"}))])
        .step("scale down", [change(&json!({"count": "1"}))])
        .step("delete", [Deed::Delete(FAN)])
}

fn fan() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "fan", "namespace": "default"},
        "data": {"count": "4", "text": "old"},
    })
}

fn change(data: &Value) -> Deed {
    Deed::Patch(FAN, json!({ "data": data }))
}

fn services(site: &Site) -> Result<Vec<Service>, Ended> {
    let maps: Cache<ConfigMap> = site.all()?;
    let controller = site.controller(Options::new("fan"));
    let trigger = controller.trigger();
    maps.follow(move |change| {
        let map = change.object();
        let name = owner(map).unwrap_or_else(|| map.name_any());
        if name == "fan" {
            trigger.changed(Key::new("default", &name));
        }
    });
    let known = maps.clone();
    let leader = Arc::new(Leader {
        children: Index::new(&maps, |map| owner(map).into_iter().collect()),
        maps,
        hand: site.hand("fan"),
        site: site.clone(),
    });
    Ok(vec![Service::new("fan", move |stop| async move {
        let reconcile = move |key| {
            let leader = leader.clone();
            async move { leader.keep(key).await }
        };
        let known = async move { known.synced().await };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

fn owner(map: &ConfigMap) -> Option<String> {
    map.owner_references()
        .first()
        .map(|owner| owner.name.clone())
}

struct Leader {
    maps: Cache<ConfigMap>,
    children: Index<ConfigMap>,
    hand: Hand,
    site: Site,
}

impl Leader {
    async fn keep(&self, key: Key) -> Result<Outcome, Error> {
        let Some(fan) = self.maps.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let data = fan.data.clone().unwrap_or_default();
        let count: usize = data["count"].parse().unwrap_or_default();
        let children = self.children.get("fan");
        let children = children.iter().filter(|map| is_of(map, &fan));
        let wanted: Vec<_> = (0..count).map(|number| format!("fan-{number}")).collect();
        let (kept, surplus): (Vec<_>, Vec<_>) =
            children.partition(|map| wanted.contains(&map.name_any()));
        let settled = surplus.is_empty()
            && kept.len() == count
            && kept.iter().all(|map| text(map) == data.get("text"));
        if settled {
            return Ok(Outcome::Settled);
        }
        // What is decided of an old fan must not be done to the children of a new one.
        let live = self.hand.confirm(&*fan).await?;
        if live.resource_version != fan.metadata.resource_version {
            return Ok(Outcome::Again(Duration::from_secs(1)));
        }
        for name in wanted {
            let found = kept.iter().find(|map| map.name_any() == name);
            match found {
                Some(map) if text(map) == data.get("text") => {}
                Some(map) => {
                    let mut map = ConfigMap::clone(map);
                    map.data = Some(data.clone());
                    self.mark(&mut map)?;
                    self.hand.replace(&map).await?;
                }
                None => {
                    let mut map = child(&fan, &name);
                    self.mark(&mut map)?;
                    self.hand.create(&map).await?;
                }
            }
        }
        for map in surplus {
            self.hand.remove(&**map, None).await?;
        }
        Ok(Outcome::Again(Duration::from_secs(5)))
    }

    /// The term is that in which the write begins.
    fn mark(&self, map: &mut ConfigMap) -> Result<(), Error> {
        let term = self.site.leadership.check()?;
        map.annotations_mut()
            .insert(FENCE.to_owned(), term.0.to_string());
        Ok(())
    }
}

fn text(map: &ConfigMap) -> Option<&String> {
    map.data.as_ref()?.get("text")
}

fn is_of(map: &ConfigMap, fan: &ConfigMap) -> bool {
    let mut owners = map.owner_references().iter();
    owners.any(|owner| Some(&owner.uid) == fan.metadata.uid.as_ref())
}

fn child(fan: &ConfigMap, name: &str) -> ConfigMap {
    let mut child = ConfigMap {
        data: fan.data.clone(),
        ..ConfigMap::default()
    };
    child.metadata.name = Some(name.to_owned());
    child.metadata.namespace = fan.namespace();
    child.metadata.owner_references = fan.controller_owner_ref(&()).map(|owner| vec![owner]);
    child
}
