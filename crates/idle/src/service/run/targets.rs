//! What runs behind services, of whatever kind.

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
    apply::Kind,
    controller::Trigger,
    key::Key,
    site::Site,
    telemetry::Meter,
    watch::{Cache, Ended, Index, Lenient, Metadata, Selection},
};
use parking_lot::Mutex;

use super::beside;
use crate::{
    api::{ElastiService, ScaleTarget},
    service::compatible::{Metrics, Watched},
    target::{Kinds, Target, look},
};

/// Looks at targets, and has services looked at when theirs changes. Of each kind that somebody names
/// the metadata are watched: that something changed is all that has to be known, the rest is asked.
pub(super) struct Targets {
    site: Site,
    kinds: Kinds,
    by_target: Index<ElastiService>,
    trigger: Trigger<Key>,
    followed: Mutex<HashSet<Kind>>,
    meter: Meter<Metrics>,
}

/// What was found.
pub(super) struct Found {
    pub(super) target: Target,
    /// Of which kind it is; nothing if there is no such kind.
    pub(super) kind: Option<Kind>,
}

impl Targets {
    pub(super) fn new(
        site: &Site,
        all: &Cache<ElastiService>,
        trigger: Trigger<Key>,
        meter: Meter<Metrics>,
    ) -> Self {
        let by_target = |service: &ElastiService| {
            let target = beside(service, &service.spec.scale_target_ref.name);
            vec![target.to_string()]
        };
        Self {
            site: site.clone(),
            kinds: Kinds::default(),
            by_target: Index::new(all, by_target),
            trigger,
            followed: Mutex::default(),
            meter,
        }
    }

    /// ElastiServices by what they scale.
    pub(super) fn by_target(&self) -> Index<ElastiService> {
        self.by_target.clone()
    }

    /// What runs behind `service` now, or what `target` of its namespace is; nothing if the server
    /// does not say.
    pub(super) async fn look(
        &self,
        service: &ElastiService,
        target: &ScaleTarget,
    ) -> Option<Found> {
        let client = &self.site.client;
        let kind = match self.kinds.of(client, target).await {
            Ok(kind) => kind,
            Err(unknown) if unknown.is_answered() => {
                let target = Target::Missing;
                return Some(Found { target, kind: None });
            }
            Err(_) => return None,
        };
        let key = beside(service, &target.name);
        let (target, served) = look(client, &kind, &key).await;
        if served {
            self.follow(&kind);
        }
        let kind = served.then_some(kind);
        (target != Target::Unknown).then_some(Found { target, kind })
    }

    fn follow(&self, kind: &Kind) {
        if !self.followed.lock().insert(kind.clone()) {
            return;
        }
        self.meter.emit(&Watched(&kind.resource.plural));
        let ApiResource {
            group, kind: name, ..
        } = &kind.resource;
        // If nothing is watched any longer the process is about to end.
        let _ = match (group.as_str(), name.as_str()) {
            // Others in this process have these already, by the types that are known of them.
            ("apps", "Deployment") => self.follow_all::<Deployment>(),
            ("apps", "StatefulSet") => self.follow_all::<StatefulSet>(),
            _ => self.follow_unknown(kind),
        };
    }

    fn follow_all<K>(&self) -> Result<(), Ended>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + 'static,
    {
        let all = self.site.here::<Metadata<K>>(&Selection::default())?;
        self.tell_of(&all);
        Ok(())
    }

    fn follow_unknown(&self, kind: &Kind) -> Result<(), Ended> {
        for (_, api) in dynamic::<Metadata<DynamicObject>>(&self.site, kind) {
            let all = self.site.watches.of(api, Selection::default())?;
            self.tell_of(&all);
        }
        Ok(())
    }

    /// Has services looked at whose target changes.
    fn tell_of<K: Resource + Send + Sync + 'static>(&self, all: &Cache<K>) {
        let (by_target, trigger) = (self.by_target.clone(), self.trigger.clone());
        all.follow(move |change| {
            for service in by_target.get(&change.key().to_string()) {
                trigger.changed(Key::of(&*service));
            }
        });
    }
}

/// Where objects of a kind are that only its name is known of.
pub(super) fn dynamic<K>(site: &Site, kind: &Kind) -> Vec<(String, Api<Lenient<K>>)>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let client = || site.client.clone();
    let namespaces = site.watches.namespaces();
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
            .field("followed", &self.followed.lock())
            .finish_non_exhaustive()
    }
}
