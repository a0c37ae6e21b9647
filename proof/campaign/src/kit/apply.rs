//! A plan that is computed and executed again and again: an app owns as many ConfigMaps as it has
//! replicas, and a Service. Users change these objects, and take a name that the app needs.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service as Address},
};
use kube::{Resource, ResourceExt, api::DynamicObject, core::ApiResource};
use neap_kit::{
    apply::{DesiredObject, Error, Object, ResourceKind, Writer, plan},
    context::Context,
    controller::{ControllerOptions, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, Index, WatchesStopped},
};
use neap_trial::{UserRequest, Workload};
use serde_json::{Value, json};

const APP: &str = "/apis/apps/v1/namespaces/default/deployments/app";
const FIRST: &str = "/api/v1/namespaces/default/configmaps/app-0";
const HELD: &str = "/api/v1/namespaces/default/configmaps/app-3";

pub(super) fn workload() -> Workload {
    Workload::new("apply")
        .without_poison("what it applies is marked with a sum over the uid of its owner")
        .actor("controller", components)
        .step("create", [UserRequest::Create(app())])
        .step(
            "write into what it owns",
            [UserRequest::Patch(
                FIRST,
                json!({"data": {"image": "mine", "more": "mine"}}),
            )],
        )
        .step("hold a name", [UserRequest::Create(held())])
        .step("scale up", [replicas(5)])
        .step("change the template", [image("app:2")])
        .step(
            "give the name back",
            [UserRequest::Delete(HELD), replicas(4)],
        )
        .step("scale down", [replicas(1)])
        .step(
            "hold a name and scale up",
            [UserRequest::Create(held()), replicas(4)],
        )
        .step("delete", [UserRequest::Delete(APP)])
}

fn replicas(count: u32) -> UserRequest {
    UserRequest::Patch(APP, json!({"spec": {"replicas": count}}))
}

fn image(image: &str) -> UserRequest {
    let container = json!({"name": "main", "image": image});
    UserRequest::Patch(
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

/// A ConfigMap that does not belong to the app.
fn held() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "app-3", "namespace": "default"},
        "data": {"words": "not yours"},
    })
}

fn components(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let apps: Cache<Deployment> = context.cache()?;
    let (maps, addresses) = (context.cache::<ConfigMap>()?, context.cache::<Address>()?);
    let controller = context.controller(ControllerOptions::new("apply"));
    let enqueuer = controller.enqueuer();
    let look = move || enqueuer.enqueue(Key::new("default", "app"));
    let told = look.clone();
    apps.subscribe(move |_| told());
    let told = look.clone();
    maps.subscribe(move |_| told());
    addresses.subscribe(move |_| look());
    let reconciler = Arc::new(AppReconciler {
        owned: Index::new(&maps, owner),
        addresses: Index::new(&addresses, owner),
        apps: apps.clone(),
        maps: maps.clone(),
        writer: context.writer("apply"),
    });
    Ok(vec![Component::new("apply", move |stop| async move {
        let reconcile = move |key| {
            let reconciler = reconciler.clone();
            async move { reconciler.reconcile(key).await }
        };
        let known = async move {
            apps.synced().await;
            maps.synced().await;
            addresses.synced().await;
        };
        controller.run_when(known, reconcile, stop).await;
    })])
}

fn owner<K: Resource>(object: &K) -> Vec<String> {
    let owners = object.owner_references().iter();
    owners.map(|owner| owner.uid.clone()).collect()
}

struct AppReconciler {
    apps: Cache<Deployment>,
    maps: Cache<ConfigMap>,
    owned: Index<ConfigMap>,
    addresses: Index<Address>,
    writer: Writer,
}

impl AppReconciler {
    async fn reconcile(&self, key: Key) -> Result<Outcome, Error> {
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
            // If the app has changed, it may need what this plan deletes.
            let now = self.writer.confirm(&*app).await?;
            if now.resource_version != app.metadata.resource_version {
                return Ok(Outcome::RequeueAfter(Duration::from_secs(1)));
            }
            self.writer.execute(changes).await?;
        }
        let (kind, live) = dynamic(&*app);
        let status = json!({
            "observedGeneration": app.metadata.generation,
            "replicas": goals.len() - 1,
            "unavailableReplicas": held,
        });
        self.writer.status(&kind, &live, &status).await?;
        // Until the caches show the writes, there may be more to do.
        Ok(if settled {
            Outcome::Done
        } else {
            Outcome::RequeueAfter(Duration::from_secs(5))
        })
    }

    /// The desired objects, and the number of names that belong to others.
    fn goals(&self, app: &Deployment) -> (Vec<DesiredObject>, usize) {
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
        // Headless, because the server would assign a random address.
        let address =
            json!({"spec": {"clusterIP": "None", "selector": {"app": "app"}, "ports": ports}});
        goals.push(goal::<Address>(app, "app", address));
        (goals, held)
    }
}

fn kind<K: Object>() -> ResourceKind {
    ResourceKind {
        resource: ApiResource::erase::<K>(&()),
        namespaced: true,
    }
}

fn goal<K: Object>(app: &Deployment, name: &str, mut object: Value) -> DesiredObject {
    object["metadata"] = json!({
        "name": name, "namespace": app.namespace(), "labels": {"app": "app"},
        "ownerReferences": [app.controller_owner_ref(&())],
    });
    DesiredObject {
        kind: kind::<K>(),
        object,
    }
}

fn dynamic<K: Object>(object: &K) -> (ResourceKind, DynamicObject) {
    let kind = kind::<K>();
    let value = serde_json::to_value(object).unwrap_or_default();
    let mut dynamic = DynamicObject::new("", &kind.resource);
    if let Ok(object) = serde_json::from_value(value) {
        dynamic = object;
    }
    (kind, dynamic)
}
