//! Reads and watches the workloads of services, of any kind.

use std::{collections::HashSet, fmt};

use k8s_openapi::{
    NamespaceResourceScope,
    api::apps::v1::{Deployment, StatefulSet},
};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
    core::DynamicResourceScope,
};
use neap_kit::{
    apply::ResourceKind,
    context::Context,
    controller::Enqueuer,
    key::Key,
    telemetry::Meter,
    watch::{Cache, Index, Metadata, Selection, WatchesStopped},
};
use parking_lot::Mutex;

use super::gather::key_beside;
use crate::{
    api::{ElastiService, ScaleTarget},
    elasti_service::compatible_metrics::{Metrics, WatchStarted},
    target::{self, KindLookup, Target},
};

/// Reads targets, and enqueues services whose target changes. Of each kind that a service names, only the
/// metadata are watched: they show that an object changed, and its scale is then read.
pub(super) struct Targets {
    context: Context,
    kinds: KindLookup,
    by_target: Index<ElastiService>,
    enqueuer: Enqueuer<Key>,
    watched: Mutex<HashSet<ResourceKind>>,
    meter: Meter<Metrics>,
}

/// A target as it was read.
pub(super) struct FoundTarget {
    pub(super) target: Target,
    /// Its kind; none if the API server has no such kind.
    pub(super) kind: Option<ResourceKind>,
}

impl Targets {
    pub(super) fn new(
        context: &Context,
        all: &Cache<ElastiService>,
        enqueuer: Enqueuer<Key>,
        meter: Meter<Metrics>,
    ) -> Self {
        let by_target = |service: &ElastiService| {
            let target = key_beside(service, &service.spec.scale_target_ref.name);
            vec![target.to_string()]
        };
        Self {
            context: context.clone(),
            kinds: KindLookup::default(),
            by_target: Index::new(all, by_target),
            enqueuer,
            watched: Mutex::default(),
            meter,
        }
    }

    /// ElastiServices by their target.
    pub(super) fn by_target(&self) -> Index<ElastiService> {
        self.by_target.clone()
    }

    /// Reads `target` in the namespace of `service`; none if the API server did not respond.
    pub(super) async fn read(
        &self,
        service: &ElastiService,
        target: &ScaleTarget,
    ) -> Option<FoundTarget> {
        let client = &self.context.client;
        let kind = match self.kinds.of(client, target).await {
            Ok(kind) => kind,
            Err(unknown) if unknown.is_definite() => {
                let target = Target::Missing;
                return Some(FoundTarget { target, kind: None });
            }
            Err(_) => return None,
        };
        let key = key_beside(service, &target.name);
        let (target, served) = target::read(client, &kind, &key).await;
        if served {
            self.watch(&kind);
        }
        let kind = served.then_some(kind);
        (target != Target::Unknown).then_some(FoundTarget { target, kind })
    }

    fn watch(&self, kind: &ResourceKind) {
        if !self.watched.lock().insert(kind.clone()) {
            return;
        }
        self.meter.emit(&WatchStarted(&kind.resource.plural));
        let ApiResource {
            group, kind: name, ..
        } = &kind.resource;
        // An error means that the watches have stopped, and the process is about to end.
        let _ = match (group.as_str(), name.as_str()) {
            // Typed, so that the watches of other controllers in this process are shared.
            ("apps", "Deployment") => self.watch_typed::<Deployment>(),
            ("apps", "StatefulSet") => self.watch_typed::<StatefulSet>(),
            _ => self.watch_dynamic(kind),
        };
    }

    fn watch_typed<K>(&self) -> Result<(), WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + 'static,
    {
        let all = self
            .context
            .scoped_cache::<Metadata<K>>(&Selection::default())?;
        self.enqueue_on_change(&all);
        Ok(())
    }

    fn watch_dynamic(&self, kind: &ResourceKind) -> Result<(), WatchesStopped> {
        for (_, api) in dynamic_apis::<Metadata<DynamicObject>>(&self.context, kind) {
            let all = self.context.watches.cache(api, Selection::default())?;
            self.enqueue_on_change(&all);
        }
        Ok(())
    }

    /// Enqueues the services whose target changes.
    fn enqueue_on_change<K: Resource + Send + Sync + 'static>(&self, all: &Cache<K>) {
        let (by_target, enqueuer) = (self.by_target.clone(), self.enqueuer.clone());
        all.subscribe(move |change| {
            for service in by_target.get(&change.key().to_string()) {
                enqueuer.enqueue(Key::of(&*service));
            }
        });
    }
}

/// The APIs of a kind without a type, one for each watched namespace; one for all if there is none.
pub(super) fn dynamic_apis<K>(context: &Context, kind: &ResourceKind) -> Vec<(String, Api<K>)>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let client = || context.client.clone();
    let namespaces = context.watches.namespaces();
    if namespaces.is_empty() {
        return vec![(String::new(), Api::all_with(client(), &kind.resource))];
    }
    let each = namespaces.iter();
    each.map(|namespace| {
        let api = Api::namespaced_with(client(), namespace, &kind.resource);
        (namespace.clone(), api)
    })
    .collect()
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Targets")
            .field("watched", &self.watched.lock())
            .finish_non_exhaustive()
    }
}
