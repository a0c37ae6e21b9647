//! A plan that is made and carried out again and again: an app owns as many maps as it has replicas,
//! and a service. Others write into what it owns, and hold a name that it wants.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service as Address},
};
use kube::{Resource, ResourceExt, api::DynamicObject, core::ApiResource};
use neap_kit::{
    apply::{Error, Goal, Hand, Kind, Object, plan},
    controller::{Options, Outcome},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use neap_trial::{Deed, Workload};
use serde_json::{Value, json};

const APP: &str = "/apis/apps/v1/namespaces/default/deployments/app";
const FIRST: &str = "/api/v1/namespaces/default/configmaps/app-0";
const HELD: &str = "/api/v1/namespaces/default/configmaps/app-3";

pub(super) fn workload() -> Workload {
    Workload::new("apply")
        .without_poison("what it applies is marked with a sum over the uid of its owner")
        .actor("controller", services)
        .step("create", [Deed::Create(app())])
        .step(
            "write into what it owns",
            [Deed::Patch(
                FIRST,
                json!({"data": {"image": "mine", "more": "mine"}}),
            )],
        )
        .step("hold a name", [Deed::Create(held())])
        .step("scale up", [replicas(5)])
        .step("change the template", [image("app:2")])
        .step("give the name back", [Deed::Delete(HELD), replicas(4)])
        .step("scale down", [replicas(1)])
        .step(
            "hold a name and scale up",
            [Deed::Create(held()), replicas(4)],
        )
        .step("delete", [Deed::Delete(APP)])
}

fn replicas(count: u32) -> Deed {
    Deed::Patch(APP, json!({"spec": {"replicas": count}}))
}

fn image(image: &str) -> Deed {
    let container = json!({"name": "main", "image": image});
    Deed::Patch(
        APP,
        json!({"spec": {"template": {"spec": {"containers": [container]}}}}),
    )
}

fn app() -> Value {
    let container = json!({"name": "main", "image": "app:1"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "app"}},
            "template": {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [container]}},
        },
    })
}

/// A map of somebody else.
fn held() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "app-3", "namespace": "default"},
        "data": {"words": "not yours"},
    })
}

fn services(site: &Site) -> Result<Vec<Service>, Ended> {
    let apps: Cache<Deployment> = site.all()?;
    let (maps, addresses) = (site.all::<ConfigMap>()?, site.all::<Address>()?);
    let controller = site.controller(Options::new("apply"));
    let trigger = controller.trigger();
    let look = move || trigger.changed(Key::new("default", "app"));
    let told = look.clone();
    apps.follow(move |_| told());
    let told = look.clone();
    maps.follow(move |_| told());
    addresses.follow(move |_| look());
    let keeper = Arc::new(Keeper {
        owned: Index::new(&maps, owner),
        addresses: Index::new(&addresses, owner),
        apps: apps.clone(),
        maps: maps.clone(),
        hand: site.hand("apply"),
    });
    Ok(vec![Service::new("apply", move |stop| async move {
        let reconcile = move |key| {
            let keeper = keeper.clone();
            async move { keeper.keep(key).await }
        };
        let known = async move {
            apps.synced().await;
            maps.synced().await;
            addresses.synced().await;
        };
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

fn owner<K: Resource>(object: &K) -> Vec<String> {
    let owners = object.owner_references().iter();
    owners.map(|owner| owner.uid.clone()).collect()
}

struct Keeper {
    apps: Cache<Deployment>,
    maps: Cache<ConfigMap>,
    owned: Index<ConfigMap>,
    addresses: Index<Address>,
    hand: Hand,
}

impl Keeper {
    async fn keep(&self, key: Key) -> Result<Outcome, Error> {
        let Some(app) = self.apps.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let uid = app.uid().unwrap_or_default();
        let (goals, held) = self.goals(&app);
        let mut live: Vec<_> = self
            .owned
            .get(&uid)
            .iter()
            .map(|map| dynamic(&**map))
            .collect();
        live.extend(self.addresses.get(&uid).iter().map(|it| dynamic(&**it)));
        let changes = plan(&goals, &live);
        let settled = changes.changes.is_empty();
        if !settled {
            // An app that has changed meanwhile may want what this plan deletes.
            let now = self.hand.confirm(&*app).await?;
            if now.resource_version != app.metadata.resource_version {
                return Ok(Outcome::Again(Duration::from_secs(1)));
            }
            self.hand.carry_out(changes).await?;
        }
        let (kind, live) = dynamic(&*app);
        let status = json!({
            "observedGeneration": app.metadata.generation,
            "replicas": goals.len() - 1,
            "unavailableReplicas": held,
        });
        self.hand.status(&kind, &live, &status).await?;
        // Until the caches show what was written, there may be more to do.
        Ok(if settled {
            Outcome::Settled
        } else {
            Outcome::Again(Duration::from_secs(5))
        })
    }

    /// What should be there, and how many names belong to others.
    fn goals(&self, app: &Deployment) -> (Vec<Goal>, usize) {
        let spec = app.spec.clone().unwrap_or_default();
        let pod = spec.template.spec.unwrap_or_default();
        let image = pod.containers.first().and_then(|one| one.image.clone());
        let names = (0..spec.replicas.unwrap_or(1)).map(|number| format!("app-{number}"));
        let all = names.len();
        let is_held = |name: &String| {
            let map = self.maps.get(&Key::new("default", name.as_str()));
            map.is_some_and(|map| !owner(&*map).contains(&app.uid().unwrap_or_default()))
        };
        let free = names.filter(|name| !is_held(name));
        let maps =
            free.map(|name| goal::<ConfigMap>(app, &name, json!({"data": {"image": image}})));
        let mut goals: Vec<_> = maps.collect();
        let held = all - goals.len();
        let ports = json!([{"name": "web", "port": 80}]);
        // Without an address of its own: the server would choose it by chance.
        let address =
            json!({"spec": {"clusterIP": "None", "selector": {"app": "app"}, "ports": ports}});
        goals.push(goal::<Address>(app, "app", address));
        (goals, held)
    }
}

fn kind<K: Object>() -> Kind {
    Kind {
        resource: ApiResource::erase::<K>(&()),
        namespaced: true,
    }
}

fn goal<K: Object>(app: &Deployment, name: &str, mut object: Value) -> Goal {
    object["metadata"] = json!({
        "name": name, "namespace": app.namespace(), "labels": {"app": "app"},
        "ownerReferences": [app.controller_owner_ref(&())],
    });
    Goal {
        kind: kind::<K>(),
        object,
    }
}

fn dynamic<K: Object>(object: &K) -> (Kind, DynamicObject) {
    let kind = kind::<K>();
    let value = serde_json::to_value(object).unwrap_or_default();
    let mut dynamic = DynamicObject::new("", &kind.resource);
    if let Ok(object) = serde_json::from_value(value) {
        dynamic = object;
    }
    (kind, dynamic)
}
