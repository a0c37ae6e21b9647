//! Caches of the objects that decisions are made from.

use std::{net::IpAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, ResourceExt};
use neap_kit::{
    apply::ObjectRef,
    builder::ControllerBuilder,
    clock::{Clock, Uptime},
    context::Context,
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change, Index, Selection, WatchesStopped},
};
use parking_lot::Mutex;

use super::{
    ResolverEndpoint,
    gather::{key_beside, uid},
};
use crate::{
    api::{
        ElastiService,
        labels::{MANAGED_BY, MANAGER, PRIVATE, SERVICE_NAME},
        names,
    },
    elasti_service::objects,
    options::Installation,
};

/// The cache of ElastiServices.
#[derive(Debug, Clone)]
pub(in crate::elasti_service) struct ElastiServices {
    pub(in crate::elasti_service) all: Cache<ElastiService>,
}

impl ElastiServices {
    /// Enqueues all services of a namespace; of all namespaces if it is empty.
    pub(super) fn enqueue_all(&self, namespace: &str, enqueuer: &Enqueuer<Key>) {
        for service in self.all.list(namespace) {
            enqueuer.enqueue(Key::of(&*service));
        }
    }
}

/// The caches. Of EndpointSlices only those that concern resolvers and services that may sleep are watched:
/// there may be very many others.
#[derive(Debug)]
pub(in crate::elasti_service) struct Watched {
    pub(in crate::elasti_service) services: ElastiServices,
    kube_services: Cache<Service>,
    /// The slices that add resolvers to public Services.
    pub(in crate::elasti_service) resolver_slices: Cache<EndpointSlice>,
    /// The slices of private Services, which show the pods.
    pod_slices: Cache<EndpointSlice>,
    /// The slices of the resolvers' own Service.
    own_slices: Cache<EndpointSlice>,
    pod_slices_by_service: Index<EndpointSlice>,
    by_public: Index<ElastiService>,
    resolver_service: Key,
    /// Since when no resolver has been ready.
    no_resolver_since: Mutex<Option<Uptime>>,
    clock: Clock,
}

impl Watched {
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        installation: &Installation,
    ) -> Result<Self, WatchesStopped> {
        let all = builder.scoped::<ElastiService>(&Selection::default(), true)?;
        let kube_services = builder.scoped::<Service>(&Selection::default(), false)?;
        let labelled = |label: String| Selection {
            labels: Some(label),
            fields: None,
        };
        let resolver_slices = labelled(format!("{MANAGED_BY}={MANAGER}"));
        let resolver_slices = builder.scoped(&resolver_slices, false)?;
        let pod_slices = labelled(format!("{PRIVATE}=true"));
        let pod_slices = builder.scoped(&pod_slices, false)?;
        let Installation {
            resolver_namespace,
            resolver_service,
            ..
        } = installation;
        let own_slices = labelled(format!("{SERVICE_NAME}={resolver_service}"));
        let api = Api::namespaced(context.client.clone(), resolver_namespace);
        let own_slices = builder.selected(api, own_slices)?;
        let watched = Self {
            pod_slices_by_service: Index::new(&pod_slices, service_of),
            by_public: Index::new(&all, |service: &ElastiService| {
                vec![key_beside(service, &service.spec.service).to_string()]
            }),
            resolver_service: Key::new(resolver_namespace, resolver_service),
            services: ElastiServices { all },
            kube_services,
            resolver_slices,
            pod_slices,
            own_slices,
            no_resolver_since: Mutex::default(),
            clock: context.clock,
        };
        watched.enqueue_on_change(builder);
        Ok(watched)
    }

    /// Enqueues the services that a change concerns.
    fn enqueue_on_change(&self, builder: &ControllerBuilder) {
        let by_service = Index::new(&self.services.all, |service: &ElastiService| {
            let private = names::private_service(&service.spec.service);
            let both = [service.spec.service.clone(), private];
            both.map(|name| key_beside(service, &name).to_string())
                .to_vec()
        });
        // An ElastiService that waits for an older one of the same Service continues when that is deleted.
        let by = by_service.clone();
        builder.on_change(&self.services.all, move |change, enqueuer| {
            let service = change.object();
            let key = key_beside(service, &service.spec.service).to_string();
            if let Change::Deleted(_) = change {
                enqueue_by(&by, &key, enqueuer);
            }
        });
        let by = by_service.clone();
        builder.on_change(&self.kube_services, move |change, enqueuer| {
            enqueue_by(&by, &change.key().to_string(), enqueuer);
            // A private Service whose owner names another Service by now is deleted by its owner.
            let owners = change.object().owner_references().iter();
            for owner in owners.filter(|_| is_private(change.object())) {
                let namespace = change.object().namespace().unwrap_or_default();
                enqueuer.enqueue(Key::new(&namespace, &owner.name));
            }
        });
        for slices in [&self.resolver_slices, &self.pod_slices] {
            let by = by_service.clone();
            builder.on_change(slices, move |change, enqueuer| {
                for key in service_of(change.object()) {
                    enqueue_by(&by, &key, enqueuer);
                }
            });
        }
        let services = self.services.clone();
        builder.on_change(&self.own_slices, move |change, enqueuer| {
            if changes_resolvers(change) {
                services.enqueue_all("", enqueuer);
            }
        });
    }

    /// Waits until all caches are complete.
    pub(super) async fn synced(&self) {
        self.services.all.synced().await;
        self.kube_services.synced().await;
        self.resolver_slices.synced().await;
        self.pod_slices.synced().await;
        self.own_slices.synced().await;
    }

    /// The oldest ElastiService of the same Service, if it is another one.
    pub(super) fn rival(&self, service: &ElastiService) -> Option<String> {
        let age = |it: &ElastiService| (it.creation_timestamp(), it.uid());
        let key = key_beside(service, &service.spec.service).to_string();
        let all = self.by_public.get(&key).into_iter();
        let oldest = all.min_by_key(|it| age(it))?;
        (age(&oldest) < age(service)).then(|| oldest.name_any())
    }

    pub(super) fn public(&self, service: &ElastiService) -> Option<Arc<Service>> {
        self.kube_services
            .get(&key_beside(service, &service.spec.service))
    }

    pub(super) fn private(&self, service: &ElastiService) -> Option<Arc<Service>> {
        let name = names::private_service(&service.spec.service);
        self.kube_services.get(&key_beside(service, &name))
    }

    /// The slices that add resolvers to its Service.
    pub(super) fn slices(&self, service: &ElastiService) -> Vec<Arc<EndpointSlice>> {
        let name = &service.spec.service;
        let both = [names::resolver_slice(name), names::resolver_slice_v6(name)];
        let both = both.iter().map(|name| key_beside(service, name));
        let found = both.filter_map(|key| self.resolver_slices.get(&key));
        let stays = |slice: &Arc<EndpointSlice>| slice.metadata.deletion_timestamp.is_none();
        found.filter(stays).collect()
    }

    /// The number of its ready pods, by the slices of the private Service.
    pub(super) fn ready_pods(&self, service: &ElastiService) -> usize {
        let name = names::private_service(&service.spec.service);
        let key = key_beside(service, &name).to_string();
        let slices = self.pod_slices_by_service.get(&key);
        let endpoints = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten());
        let ready = endpoints.filter(|endpoint| objects::is_ready(endpoint));
        ready.count()
    }

    /// The ready resolvers. Slices that another user labels with the name of the resolvers' Service are
    /// ignored: they would lead our traffic elsewhere.
    pub(super) fn resolvers(&self) -> Vec<ResolverEndpoint> {
        let service = self.kube_services.get(&self.resolver_service);
        let uid = service.as_deref().and_then(uid);
        let slices = self.own_slices.list("");
        let slices = slices.iter().map(|slice| &**slice);
        objects::resolver_endpoints(slices.filter(|slice| objects::is_owned(*slice, uid)))
    }

    /// How long none of `resolvers` has been ready.
    pub(super) fn no_resolver_for(&self, resolvers: &[ResolverEndpoint]) -> Option<Duration> {
        let now = self.clock.uptime();
        let mut since = self.no_resolver_since.lock();
        if resolvers.is_empty() {
            let since = *since.get_or_insert(now);
            Some(now.saturating_sub(since))
        } else {
            *since = None;
            None
        }
    }

    /// The addresses of the resolvers' Service.
    pub(super) fn resolver_service_addresses(&self) -> Vec<IpAddr> {
        let service = self.kube_services.get(&self.resolver_service);
        let spec = service.as_deref().and_then(|it| it.spec.as_ref());
        let addresses = spec.and_then(|spec| spec.cluster_ips.as_ref());
        let addresses = addresses.into_iter().flatten();
        addresses
            .filter_map(|address| address.parse().ok())
            .collect()
    }

    /// The objects that were made for a Service that it no longer names: slices first, so that no slice is
    /// left without its private Service.
    pub(super) fn leftovers(&self, service: &ElastiService) -> Vec<ObjectRef> {
        let namespace = service.namespace().unwrap_or_default();
        let (uid, name) = (uid(service), &service.spec.service);
        let private = names::private_service(name);
        let slices = self.resolver_slices.list(&namespace).into_iter();
        let slices = slices.filter(|it| {
            objects::is_owned(&**it, uid) && it.labels().get(SERVICE_NAME) != Some(name)
        });
        let services = self.kube_services.list(&namespace).into_iter();
        let services = services.filter(|it| {
            is_private(it) && objects::is_owned(&**it, uid) && it.name_any() != private
        });
        let slices = slices.map(|slice| ObjectRef::of(&*slice));
        let services = services.map(|service| ObjectRef::of(&*service));
        slices.chain(services).collect()
    }
}

fn enqueue_by(index: &Index<ElastiService>, key: &str, enqueuer: &Enqueuer<Key>) {
    for service in index.get(key) {
        enqueuer.enqueue(Key::of(&*service));
    }
}

fn is_private(service: &Service) -> bool {
    service.labels().contains_key(PRIVATE)
}

/// The key of the Service that a slice belongs to.
fn service_of(slice: &EndpointSlice) -> Vec<String> {
    let namespace = slice.namespace().unwrap_or_default();
    let name = slice.labels().get(SERVICE_NAME).into_iter();
    let keys = name.map(|name| Key::new(&namespace, name).to_string());
    keys.collect()
}

fn changes_resolvers(change: &Change<EndpointSlice>) -> bool {
    match change {
        Change::Modified { old, new } => {
            objects::resolver_endpoints([&**old]) != objects::resolver_endpoints([&**new])
                || old.owner_references() != new.owner_references()
        }
        _ => true,
    }
}
