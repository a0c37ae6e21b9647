//! What the watches show.

use std::{net::IpAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, ResourceExt};
use neap_kit::{
    clock::{Clock, Uptime},
    controller::Trigger,
    key::Key,
    site::Site,
    watch::{Cache, Change, Ended, Index, Selection},
    wiring::Wiring,
};
use parking_lot::Mutex;

use super::{Settings, beside, is_private, uid};
use crate::{
    api::{ElastiService, names},
    service::{
        facts::Resolver,
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
    by_service: Index<EndpointSlice>,
    by_public: Index<ElastiService>,
    resolver_service: Key,
    /// Since when no resolver is ready.
    deserted: Mutex<Option<Uptime>>,
    clock: Clock,
}

impl Known {
    pub(super) fn new(
        wiring: &mut Wiring,
        site: &Site,
        settings: &Settings,
    ) -> Result<Self, Ended> {
        let all = wiring.here::<ElastiService>(&Selection::default(), true)?;
        let services = wiring.here::<Service>(&Selection::default(), false)?;
        let labelled = |label: String| Selection {
            labels: Some(label),
            fields: None,
        };
        let ours = labelled(format!("{MANAGED_BY}={US}"));
        let ours = wiring.here(&ours, false)?;
        let behind = labelled(format!("{PRIVATE}=true"));
        let behind = wiring.here(&behind, false)?;
        let resolvers = labelled(format!("{SERVICE_NAME}={}", settings.resolver_service));
        let there = Api::namespaced(site.client.clone(), &settings.resolver_namespace);
        let resolvers = wiring.select(there, resolvers)?;
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
            deserted: Mutex::default(),
            clock: site.clock,
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

    /// How long none of `resolvers` has been ready.
    pub(super) fn deserted(&self, resolvers: &[Resolver]) -> Option<Duration> {
        let now = self.clock.uptime();
        let mut deserted = self.deserted.lock();
        if resolvers.is_empty() {
            let since = *deserted.get_or_insert(now);
            Some(now.saturating_sub(since))
        } else {
            *deserted = None;
            None
        }
    }

    /// The addresses of the Service of the resolvers.
    pub(super) fn mirrors(&self) -> Vec<IpAddr> {
        let service = self.services.get(&self.resolver_service);
        let spec = service.as_deref().and_then(|it| it.spec.as_ref());
        let addresses = spec.and_then(|spec| spec.cluster_ips.as_ref());
        let addresses = addresses.into_iter().flatten();
        addresses
            .filter_map(|address| address.parse().ok())
            .collect()
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

pub(super) fn tell_all(all: &Cache<ElastiService>, namespace: &str, trigger: &Trigger<Key>) {
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
