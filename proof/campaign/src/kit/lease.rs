//! Three candidates of which one leads: the leader keeps the requested number of ConfigMaps, and
//! marks each with its term. In the history of all ConfigMaps the terms must never decrease.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Writer},
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, Index, WatchesStopped},
};
use neap_trial::{UserRequest, Workload, judge::FENCE};
use serde_json::{Value, json};

const LEASE: &str = "fan";
const HELD: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fan";
const FAN: &str = "/api/v1/namespaces/default/configmaps/fan";

pub(super) fn workload() -> Workload {
    Workload::new("lease")
        .without_poison("it keeps one object, whichever namespaces there are")
        .elected("one", LEASE, components)
        .elected("two", LEASE, components)
        .elected("three", LEASE, components)
        .step("create", [UserRequest::Create(fan())])
        .step("scale up", [change(&json!({"count": "6"}))])
        .step(
            "delete the lease and change the template",
            [UserRequest::Delete(HELD), change(&json!({"text": "new"}))],
        )
        // The current leader has a later term than all before.
        .step("scale up again", [change(&json!({"count": "8"}))])
        .step("scale down", [change(&json!({"count": "1"}))])
        .step("delete", [UserRequest::Delete(FAN)])
}

fn fan() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "fan", "namespace": "default"},
        "data": {"count": "4", "text": "old"},
    })
}

fn change(data: &Value) -> UserRequest {
    UserRequest::Patch(FAN, json!({ "data": data }))
}

fn components(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let maps: Cache<ConfigMap> = context.cache()?;
    let controller = context.controller(ControllerOptions::new("fan"));
    let enqueuer = controller.enqueuer();
    maps.subscribe(move |change| {
        let map = change.object();
        let name = owner(map).unwrap_or_else(|| map.name_any());
        if name == "fan" {
            enqueuer.enqueue(Key::new("default", &name));
        }
    });
    let known = maps.clone();
    let leader = Arc::new(Leader {
        children: Index::new(&maps, |map| owner(map).into_iter().collect()),
        maps,
        writer: context.writer("fan"),
        context: context.clone(),
    });
    Ok(vec![Component::new("fan", move |stop| async move {
        let reconcile = move |key| {
            let leader = leader.clone();
            async move { leader.reconcile(key).await }
        };
        let known = async move { known.synced().await };
        controller.run_when(known, reconcile, stop).await;
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
    writer: Writer,
    context: Context,
}

impl Leader {
    async fn reconcile(&self, key: Key) -> Result<Outcome, Error> {
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
            return Ok(Outcome::Done);
        }
        // A decision about an old parent must not be applied to the children of a new one.
        let live = self.writer.confirm(&*fan).await?;
        if live.resource_version != fan.metadata.resource_version {
            return Ok(Outcome::RequeueAfter(Duration::from_secs(1)));
        }
        for name in wanted {
            let found = kept.iter().find(|map| map.name_any() == name);
            match found {
                Some(map) if text(map) == data.get("text") => {}
                Some(map) => {
                    let mut map = ConfigMap::clone(map);
                    map.data = Some(data.clone());
                    self.mark(&mut map)?;
                    self.writer.replace(&map).await?;
                }
                None => {
                    let mut map = child(&fan, &name);
                    self.mark(&mut map)?;
                    self.writer.create(&map).await?;
                }
            }
        }
        for map in surplus {
            self.writer.remove(&**map, None).await?;
        }
        Ok(Outcome::RequeueAfter(Duration::from_secs(5)))
    }

    /// The term at the start of the write.
    fn mark(&self, map: &mut ConfigMap) -> Result<(), Error> {
        let term = self.context.leadership.check()?;
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
