//! The allotment of resolver ports among all services. Freed ones are read from a ConfigMap, which `act`
//! writes.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::Tools,
    key::Key,
    watch::{Cache, Index},
};
use parking_lot::Mutex;

use super::ports::{
    GrantedPorts, PortHolder, PortLedger, PortRange, PortsExhausted, grant, parse_freed,
};
use crate::{
    api::{ElastiService, ResolverPort},
    elasti_service::{controller::Settings, objects},
};

/// The ConfigMap in the namespace of the operator that records freed ports and when they were freed.
const FREED_PORTS: &str = "neaptide-idle-freed-ports";

#[derive(Debug)]
pub(in crate::elasti_service) struct PortAllotment {
    range: PortRange,
    namespace: String,
    by_port: Index<ElastiService>,
    /// Ports that were granted and are not yet in a status that the watches show.
    promised: Mutex<HashMap<i32, Key>>,
    /// The last ElastiService with a port. One that was deleted without freeing it had it until now.
    last_holder: Mutex<HashMap<i32, PortOwner>>,
    all: Cache<ElastiService>,
}

/// An ElastiService by name and uid: one that was deleted and created again is another.
type PortOwner = (Key, Option<String>);

impl PortAllotment {
    pub(super) fn new(all: &Cache<ElastiService>, settings: &Settings) -> Self {
        let ports = |service: &ElastiService| {
            let ports = recorded(service).iter();
            ports.map(|port| port.resolver_port.to_string()).collect()
        };
        Self {
            range: settings.resolver_ports,
            namespace: settings.installation.operator_namespace.clone(),
            by_port: Index::new(all, ports),
            promised: Mutex::default(),
            last_holder: Mutex::default(),
            all: all.clone(),
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.promised.lock().retain(|_, holder| holder != key);
        self.last_holder
            .lock()
            .retain(|_, (holder, _)| holder != key);
    }

    /// The ports of an ElastiService of this name that is gone, even if another one of the name exists now.
    /// One whose finalizer was respected has freed its ports before.
    pub(in crate::elasti_service) fn left_behind(
        &self,
        key: &Key,
        now: Option<&ElastiService>,
    ) -> Vec<i32> {
        let uid = now.and_then(ResourceExt::uid);
        let last = self.last_holder.lock();
        let held = last
            .iter()
            .filter(|(_, (holder, was))| holder == key && (now.is_none() || *was != uid));
        held.map(|(port, _)| *port).collect()
    }

    /// The ports that `service` has or may have.
    pub(super) async fn grant(
        &self,
        tools: &Tools,
        service: &ElastiService,
        public: Option<&Service>,
    ) -> Result<Result<GrantedPorts, PortsExhausted>, Error> {
        let deleted = service.metadata.deletion_timestamp.is_some();
        let recorded = recorded(service);
        let own = recorded.iter();
        let own = own.filter(|port| port.is_of(&service.spec.service));
        let own = own.map(|port| (port.name.clone(), port.port));
        let wanted = match public {
            _ if deleted => Vec::new(),
            Some(public) => objects::ports(public),
            // The Service may be created again.
            None => own.collect(),
        };
        if !deleted {
            let identity = (Key::of(service), service.uid());
            let ports = recorded.iter().map(|port| port.resolver_port);
            let mut last = self.last_holder.lock();
            last.extend(ports.map(|port| (port, identity.clone())));
        }
        let now = tools.clock.now();
        let unchecked = self.try_grant(service, &wanted, None, now);
        if deleted || matches!(&unchecked, Ok(granted) if granted.ports == recorded) {
            return Ok(unchecked);
        }
        let freed = self.read_freed(tools).await?.map(|map| freed(&map));
        let freed = freed.unwrap_or_default();
        Ok(self.try_grant(service, &wanted, Some(&freed), now))
    }

    /// The grant by the caches and `freed` ports. Without the latter, no port is promised.
    fn try_grant(
        &self,
        service: &ElastiService,
        wanted: &[(String, i32)],
        freed: Option<&BTreeMap<i32, Timestamp>>,
        now: Timestamp,
    ) -> Result<GrantedPorts, PortsExhausted> {
        let key = Key::of(service);
        let mut promised = self.promised.lock();
        let last = self.last_holder.lock();
        let held = |port: i32| {
            let holders = self.by_port.get(&port.to_string());
            let others = holders.iter().filter(|other| Key::of(&***other) != key);
            let promised = promised.get(&port).filter(|holder| **holder != key);
            // A deleted ElastiService has its ports until they are recorded as freed.
            let gone = last.get(&port).filter(|(holder, uid)| {
                let live = self.all.get(holder);
                *holder != key && live.is_none_or(|live| live.uid() != *uid)
            });
            let gone = gone.map(|(holder, _)| holder);
            // A promised port has precedence over every other holder.
            let promised = promised.or(gone).map(|_| PortHolder {
                created: None,
                uid: String::new(),
            });
            others.map(|other| holder(other)).chain(promised).min()
        };
        let none = BTreeMap::new();
        let ledger = PortLedger {
            range: self.range,
            held: &held,
            freed: freed.unwrap_or(&none),
            now,
        };
        let (us, name) = (holder(service), &service.spec.service);
        let granted = grant(&ledger, &us, name, recorded(service), wanted)?;
        if freed.is_some() {
            let ports = granted.ports.iter().map(|port| port.resolver_port);
            promised.extend(ports.map(|port| (port, key.clone())));
        }
        Ok(granted)
    }

    /// The ConfigMap that records freed ports.
    pub(in crate::elasti_service) fn freed_ports_key(&self) -> Key {
        Key::new(&self.namespace, FREED_PORTS)
    }

    async fn read_freed(&self, tools: &Tools) -> Result<Option<ConfigMap>, Error> {
        tools.writer.find(&self.freed_ports_key()).await
    }

    /// Forgets who had `ports`, which are recorded as freed.
    pub(in crate::elasti_service) fn forget(&self, ports: &[i32]) {
        self.promised.lock().retain(|port, _| !ports.contains(port));
        self.last_holder
            .lock()
            .retain(|port, _| !ports.contains(port));
    }
}

/// The recorded freed ports.
pub(in crate::elasti_service) fn freed(map: &ConfigMap) -> BTreeMap<i32, Timestamp> {
    map.data.as_ref().map(parse_freed).unwrap_or_default()
}

fn recorded(service: &ElastiService) -> &[ResolverPort] {
    let status = service.status.as_ref();
    status.map(|status| &*status.ports).unwrap_or_default()
}

fn holder(service: &ElastiService) -> PortHolder {
    PortHolder {
        created: service.creation_timestamp().map(|time| time.0),
        uid: service.uid().unwrap_or_default(),
    }
}
