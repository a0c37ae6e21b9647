//! What the watches show.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, ResourceExt};
use neap_kit::{
    controller::Trigger,
    key::Key,
    site::Site,
    watch::{Cache, Change, Ended, Index, Metadata, Selection},
    wiring::Wiring,
};

use super::{Settings, beside, is_private, uid};
use crate::{
    api::{ElastiService, names},
    service::{
        facts::{OFF, Resolver},
        objects::{self, MANAGED_BY, PRIVATE, SERVICE_NAME, US},
    },
};

/// Caches of what decisions are made from. Of slices only those that have to do with us are watched:
/// there may be very many others.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) all: Cache<ElastiService>,
    services: Cache<Service>,
    pub(super) ours: Cache<EndpointSlice>,
    behind: Cache<EndpointSlice>,
    resolvers: Cache<EndpointSlice>,
    namespaces: Cache<Metadata<Namespace>>,
    by_service: Index<EndpointSlice>,
    by_public: Index<ElastiService>,
    resolver_service: Key,
}

impl Known {
    pub(super) fn new(
        wiring: &mut Wiring,
        site: &Site,
        settings: &Settings,
    ) -> Result<Self, Ended> {
        let all = wiring.kept::<ElastiService>()?;
        let services = wiring.read::<Service>()?;
        let labelled = |label: String| Selection {
            labels: Some(label),
            fields: None,
        };
        let client = || site.client.clone();
        let ours = labelled(format!("{MANAGED_BY}={US}"));
        let ours = wiring.select(Api::all(client()), ours)?;
        let behind = labelled(format!("{PRIVATE}=true"));
        let behind = wiring.select(Api::all(client()), behind)?;
        let resolvers = labelled(format!("{SERVICE_NAME}={}", settings.resolver_service));
        let there = Api::namespaced(client(), &settings.resolver_namespace);
        let resolvers = wiring.select(there, resolvers)?;
        let namespaces = wiring.select(Api::all(client()), Selection::default())?;
        let known = Self {
            by_service: Index::new(&behind, of_service),
            by_public: Index::new(&all, |service: &ElastiService| {
                vec![beside(service, &service.spec.service).to_string()]
            }),
            resolver_service: Key::new(&settings.resolver_namespace, &settings.resolver_service),
            all,
            services,
            ours,
            behind,
            resolvers,
            namespaces,
        };
        known.follow(wiring);
        Ok(known)
    }

    /// Has those looked at whom a change concerns.
    fn follow(&self, wiring: &Wiring) {
        let named = Index::new(&self.all, |service: &ElastiService| {
            let private = names::private_service(&service.spec.service);
            let both = [service.spec.service.clone(), private];
            both.map(|name| beside(service, &name).to_string()).to_vec()
        });
        // Whoever waits for another to go is to hear of it.
        let by = named.clone();
        wiring.follow(&self.all, move |change, trigger| {
            let service = change.object();
            let key = beside(service, &service.spec.service).to_string();
            if let Change::Deleted(_) = change {
                tell(&by, &key, trigger);
            }
        });
        let by = named.clone();
        wiring.follow(&self.services, move |change, trigger| {
            tell(&by, &change.key().to_string(), trigger);
            // What was made for a Service that is no longer named goes with its owner's next look.
            let owners = change.object().owner_references().iter();
            for owner in owners.filter(|_| is_private(change.object())) {
                let namespace = change.object().namespace().unwrap_or_default();
                trigger.changed(Key::new(&namespace, &owner.name));
            }
        });
        for slices in [&self.ours, &self.behind] {
            let by = named.clone();
            wiring.follow(slices, move |change, trigger| {
                for key in of_service(change.object()) {
                    tell(&by, &key, trigger);
                }
            });
        }
        let all = self.all.clone();
        wiring.follow(&self.resolvers, move |change, trigger| {
            if moves(change) {
                tell_all(&all, "", trigger);
            }
        });
        let all = self.all.clone();
        wiring.follow(&self.namespaces, move |change, trigger| {
            if let Change::Modified { old, new } = change
                && is_off(old) != is_off(new)
            {
                tell_all(&all, change.key().name(), trigger);
            }
        });
    }

    /// The eldest of those that name the same Service, if it is another.
    pub(super) fn rival(&self, service: &ElastiService) -> Option<String> {
        let age = |it: &ElastiService| (it.creation_timestamp(), it.uid());
        let key = beside(service, &service.spec.service).to_string();
        let all = self.by_public.get(&key).into_iter();
        let eldest = all.min_by_key(|it| age(it))?;
        (age(&eldest) < age(service)).then(|| eldest.name_any())
    }

    pub(super) fn public(&self, service: &ElastiService) -> Option<Arc<Service>> {
        self.services.get(&beside(service, &service.spec.service))
    }

    pub(super) fn private(&self, service: &ElastiService) -> Option<Arc<Service>> {
        let name = names::private_service(&service.spec.service);
        self.services.get(&beside(service, &name))
    }

    /// The slices that bring resolvers into its Service.
    pub(super) fn slices(&self, service: &ElastiService) -> Vec<Arc<EndpointSlice>> {
        let name = &service.spec.service;
        let both = [names::resolver_slice(name), names::resolver_slice_v6(name)];
        let both = both.iter().map(|name| beside(service, name));
        let found = both.filter_map(|key| self.ours.get(&key));
        let stays = |slice: &Arc<EndpointSlice>| slice.metadata.deletion_timestamp.is_none();
        found.filter(stays).collect()
    }

    /// How many of its pods are ready, by the slices of the private Service.
    pub(super) fn ready_pods(&self, service: &ElastiService) -> usize {
        let name = names::private_service(&service.spec.service);
        let slices = self.by_service.get(&beside(service, &name).to_string());
        let endpoints = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten());
        let ready = endpoints.filter(|endpoint| objects::is_ready(endpoint));
        ready.count()
    }

    /// The resolvers that are ready. Slices that somebody else made in the name of their Service would
    /// lead our traffic to them.
    pub(super) fn resolvers(&self) -> Vec<Resolver> {
        let service = self.services.get(&self.resolver_service);
        let uid = service.as_deref().and_then(uid);
        let slices = self.resolvers.list("");
        let theirs = slices.iter().map(|slice| &**slice);
        objects::resolvers(theirs.filter(|slice| objects::is_owned(*slice, uid)))
    }

    pub(super) fn is_off(&self, namespace: &str) -> bool {
        let namespace = self.namespaces.get(&Key::new("", namespace));
        namespace.is_some_and(|namespace| is_off(&namespace))
    }

    /// What was made for a Service that it no longer names.
    pub(super) fn leftovers(
        &self,
        service: &ElastiService,
    ) -> (Vec<Arc<Service>>, Vec<Arc<EndpointSlice>>) {
        let namespace = service.namespace().unwrap_or_default();
        let (uid, name) = (uid(service), &service.spec.service);
        let private = names::private_service(name);
        let services = self.services.list(&namespace).into_iter();
        let services = services.filter(|it| {
            is_private(it) && objects::is_owned(&**it, uid) && it.name_any() != private
        });
        let slices = self.ours.list(&namespace).into_iter();
        let slices = slices.filter(|it| {
            objects::is_owned(&**it, uid) && it.labels().get(SERVICE_NAME) != Some(name)
        });
        (services.collect(), slices.collect())
    }
}

fn tell(named: &Index<ElastiService>, key: &str, trigger: &Trigger<Key>) {
    for service in named.get(key) {
        trigger.changed(Key::of(&*service));
    }
}

fn tell_all(all: &Cache<ElastiService>, namespace: &str, trigger: &Trigger<Key>) {
    for service in all.list(namespace) {
        trigger.changed(Key::of(&*service));
    }
}

fn of_service(slice: &EndpointSlice) -> Vec<String> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME).into_iter();
    let keys = name.map(|name| Key::new(&namespace, name).to_string());
    keys.collect()
}

fn moves(change: &Change<EndpointSlice>) -> bool {
    match change {
        Change::Modified { old, new } => {
            objects::resolvers([&**old]) != objects::resolvers([&**new])
                || old.owner_references() != new.owner_references()
        }
        _ => true,
    }
}

fn is_off(namespace: &Metadata<Namespace>) -> bool {
    let off = namespace.annotations().get(OFF);
    off.is_some_and(|off| off == "true")
}
