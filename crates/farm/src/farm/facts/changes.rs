//! Which farms a change in the cluster concerns.

use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Object,
    builder::ControllerBuilder,
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change},
};
use tokio_util::sync::CancellationToken;

use super::{component_caches::ComponentCaches, gather::FarmSources};
use crate::{
    api::{MANAGED_BY_LABEL, MANAGER},
    farm::{
        component::farm_of,
        objects::{self, ServiceMonitor},
    },
};

/// Enqueues the farms of everything that changes.
pub(super) fn enqueue_on_change(sources: &FarmSources, builder: &ControllerBuilder) {
    let components = &sources.components;
    enqueue_farms(builder, &components.schedulers);
    enqueue_farms(builder, &components.workers);
    enqueue_farms(builder, &components.storages);
    enqueue_farms(builder, &components.frontends);
    enqueue_farms(builder, &components.browsers);
    enqueue_owned(builder, components, &sources.deployments);
    enqueue_owned(builder, components, &sources.stateful_sets);
    enqueue_owned(builder, components, &sources.services);
    enqueue_owned(builder, components, &sources.ingresses);
    enqueue_owned(builder, components, &sources.accounts);
    enqueue_owned(builder, components, &sources.budgets);
    enqueue_owned(builder, components, &sources.policies);
    enqueue_owned(builder, components, &sources.config_maps);
    enqueue_owned(builder, components, &sources.monitors);
    enqueue_owners(builder, &sources.pods);
    enqueue_owners(builder, &sources.operations);
    let storages = components.storages.clone();
    builder.on_change(&sources.claims, move |change, enqueuer| {
        for storage in storages.list(change.key().namespace()) {
            enqueuer.enqueue(farm_key(&*storage));
        }
    });
    enqueue_users_of_config_maps(builder, sources);
}

/// Waits until the server serves ServiceMonitors: then every farm needs some. Nothing else tells that.
pub(crate) struct AwaitMonitors {
    monitors: Cache<ServiceMonitor>,
    components: ComponentCaches,
}

impl AwaitMonitors {
    pub(super) fn new(sources: &FarmSources) -> Self {
        Self {
            monitors: sources.monitors.clone(),
            components: sources.components.clone(),
        }
    }

    /// Enqueues all farms, unless `stop` comes first.
    pub(crate) async fn run(self, enqueuer: Enqueuer<Key>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.monitors.synced() => {}
        }
        for component in self.components.list("") {
            enqueuer.enqueue(Key::new(component.namespace(), component.farm()));
        }
    }
}

fn enqueue_users_of_config_maps(builder: &ControllerBuilder, sources: &FarmSources) {
    let components = sources.components.clone();
    builder.on_change(&sources.config_maps, move |change, enqueuer| {
        let key = change.key();
        for component in components.list(key.namespace()) {
            let trust = component.trust().map(|it| &*it.1.config_map_name);
            if [component.config_map_name(), trust].contains(&Some(key.name())) {
                enqueuer.enqueue(Key::new(key.namespace(), component.farm()));
            }
        }
    });
}

fn enqueue_farms<K>(builder: &ControllerBuilder, cache: &Cache<K>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    builder.on_change(cache, |change, enqueuer| {
        enqueuer.enqueue(farm_key(&**change.object()));
        // A component that changed its farm is missed by the former.
        if let Change::Modified { old, .. } = change {
            enqueuer.enqueue(farm_key(&**old));
        }
    });
}

/// Objects of the kinds that components own. When one goes, a component that could not have its name can.
fn enqueue_owned<K>(builder: &ControllerBuilder, components: &ComponentCaches, cache: &Cache<K>)
where
    K: Object + Resource<Scope = NamespaceResourceScope> + 'static,
{
    enqueue_owners(builder, cache);
    let components = components.clone();
    builder.on_change(cache, move |change, enqueuer| {
        let Change::Deleted(object) = change else {
            return;
        };
        let key = change.key();
        for (kind, name) in objects::possible_owners(&object.name_any()) {
            let component = components.get(kind, &Key::new(key.namespace(), name));
            if let Some(component) = component {
                enqueuer.enqueue(Key::new(key.namespace(), component.farm()));
            }
        }
    });
}

/// Objects that we made carry the label of their farm.
fn enqueue_owners<K>(builder: &ControllerBuilder, cache: &Cache<K>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let enqueue = |object: &K, enqueuer: &Enqueuer<Key>| {
        let labels = object.meta().labels.as_ref();
        let ours = labels.and_then(|it| it.get(MANAGED_BY_LABEL));
        if ours.is_some_and(|it| it == MANAGER) {
            enqueuer.enqueue(farm_key(object));
        }
    };
    builder.on_change(cache, move |change, enqueuer| {
        enqueue(change.object(), enqueuer);
        if let Change::Modified { old, .. } = change {
            enqueue(old, enqueuer);
        }
    });
}

fn farm_key<K: Resource>(object: &K) -> Key {
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    Key::new(namespace, farm_of(object.meta()))
}
