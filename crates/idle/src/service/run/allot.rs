//! Who listens where: the allotment of resolver ports, and the note of those that were freed.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::{
    ResourceExt,
    api::{ApiResource, ObjectMeta},
};
use neap_kit::{
    apply::{Error, Kind},
    key::Key,
    watch::{Cache, Index},
    wiring::Tools,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Settings;
use crate::{
    api::{ElastiService, ResolverPort},
    service::{
        objects,
        ports::{Book, Exhausted, Granted, Holder, Range, grant, note, read},
    },
};

/// In the namespace of the operator: ports that rest, and since when.
pub(super) const FREED: &str = "neaptide-idle-freed-ports";

#[derive(Debug)]
pub(super) struct Allotment {
    range: Range,
    namespace: String,
    by_port: Index<ElastiService>,
    /// Given, but not yet in a status that the watches show.
    promised: Mutex<HashMap<i32, Key>>,
    /// Who was last seen with a port. One that is gone without a word had it until just now.
    last: Mutex<HashMap<i32, Identity>>,
    all: Cache<ElastiService>,
}

/// An ElastiService that lives once: another of its name is another.
type Identity = (Key, Option<String>);

impl Allotment {
    pub(super) fn new(all: &Cache<ElastiService>, settings: &Settings) -> Self {
        let ports = |service: &ElastiService| {
            let ports = recorded(service).iter();
            ports.map(|port| port.resolver_port.to_string()).collect()
        };
        Self {
            range: settings.range,
            namespace: settings.namespace.clone(),
            by_port: Index::new(all, ports),
            promised: Mutex::default(),
            last: Mutex::default(),
            all: all.clone(),
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        self.promised.lock().retain(|_, holder| holder != key);
        self.last.lock().retain(|_, (holder, _)| holder != key);
    }

    /// Writes down as freed what one of this name had that is gone, be it that another is there now.
    /// Who goes as it should has freed everything before.
    pub(super) async fn free_after(
        &self,
        tools: &Tools,
        key: &Key,
        now: Option<&ElastiService>,
    ) -> Result<(), Error> {
        let uid = now.and_then(ResourceExt::uid);
        let left: Vec<i32> = {
            let last = self.last.lock();
            let theirs = last
                .iter()
                .filter(|(_, (holder, was))| holder == key && (now.is_none() || *was != uid));
            theirs.map(|(port, _)| *port).collect()
        };
        self.free(tools, &left).await
    }

    /// The ports that `service` has or may have.
    pub(super) async fn grant(
        &self,
        tools: &Tools,
        service: &ElastiService,
        public: Option<&Service>,
    ) -> Result<Result<Granted, Exhausted>, Error> {
        let leaving = service.metadata.deletion_timestamp.is_some();
        let recorded = recorded(service);
        let known = recorded.iter();
        let known = known.filter(|port| port.is_of(&service.spec.service));
        let known = known.map(|port| (port.name.clone(), port.port));
        let wanted = match public {
            _ if leaving => Vec::new(),
            Some(public) => objects::ports(public),
            // It may come back.
            None => known.collect(),
        };
        if !leaving {
            let identity = (Key::of(service), service.uid());
            let ports = recorded.iter().map(|port| port.resolver_port);
            let mut last = self.last.lock();
            last.extend(ports.map(|port| (port, identity.clone())));
        }
        let now = tools.clock.now();
        let unread = self.try_grant(service, &wanted, None, now);
        if leaving || matches!(&unread, Ok(granted) if granted.ports == recorded) {
            return Ok(unread);
        }
        let freed = self.read(tools).await?.map(|map| freed(&map));
        let freed = freed.unwrap_or_default();
        Ok(self.try_grant(service, &wanted, Some(&freed), now))
    }

    /// What follows from what is known. Without knowing what was `freed` nothing is promised.
    fn try_grant(
        &self,
        service: &ElastiService,
        wanted: &[(String, i32)],
        freed: Option<&BTreeMap<i32, Timestamp>>,
        now: Timestamp,
    ) -> Result<Granted, Exhausted> {
        let key = Key::of(service);
        let mut promised = self.promised.lock();
        let last = self.last.lock();
        let others = |port: i32| {
            let holders = self.by_port.get(&port.to_string());
            let others = holders.iter().filter(|other| Key::of(&***other) != key);
            let promised = promised.get(&port).filter(|holder| **holder != key);
            // One that is gone has it until that is written down.
            let gone = last.get(&port).filter(|(holder, uid)| {
                let live = self.all.get(holder);
                *holder != key && live.is_none_or(|live| live.uid() != *uid)
            });
            let gone = gone.map(|(holder, _)| holder);
            // What was promised is as good as given long ago.
            let promised = promised.or(gone).map(|_| Holder {
                created: None,
                uid: String::new(),
            });
            others.map(|other| holder(other)).chain(promised).min()
        };
        let none = BTreeMap::new();
        let book = Book {
            range: self.range,
            held: &others,
            freed: freed.unwrap_or(&none),
            now,
        };
        let (us, name) = (holder(service), &service.spec.service);
        let granted = grant(&book, &us, name, recorded(service), wanted)?;
        if freed.is_some() {
            let ports = granted.ports.iter().map(|port| port.resolver_port);
            promised.extend(ports.map(|port| (port, key.clone())));
        }
        Ok(granted)
    }

    async fn read(&self, tools: &Tools) -> Result<Option<ConfigMap>, Error> {
        tools.hand.find(&Key::new(&self.namespace, FREED)).await
    }

    /// Writes down that `ports` are freed.
    pub(super) async fn free(&self, tools: &Tools, ports: &[i32]) -> Result<(), Error> {
        if ports.is_empty() {
            return Ok(());
        }
        let now = tools.clock.now();
        match self.read(tools).await? {
            Some(live) => self.add(tools, live, ports, now).await?,
            None => self.begin(tools, ports, now).await?,
        }
        self.promised.lock().retain(|port, _| !ports.contains(port));
        self.last.lock().retain(|port, _| !ports.contains(port));
        Ok(())
    }

    async fn begin(&self, tools: &Tools, ports: &[i32], now: Timestamp) -> Result<(), Error> {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(FREED.to_owned()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            data: Some(note(&BTreeMap::new(), ports, now)),
            ..ConfigMap::default()
        };
        match tools.hand.create(&map).await? {
            Some(_) => Ok(()),
            None => Err(Error::Replaced(Key::of(&map))),
        }
    }

    /// Only what is new and what has rested: others may write beside us.
    async fn add(
        &self,
        tools: &Tools,
        live: ConfigMap,
        ports: &[i32],
        now: Timestamp,
    ) -> Result<(), Error> {
        let before = freed(&live);
        let kept = note(&before, ports, now);
        let had = live.data.unwrap_or_default();
        let gone = had.keys().filter(|port| !kept.contains_key(*port));
        let gone = gone.map(|port| (port.clone(), Value::Null));
        let new = ports.iter().map(|port| (port.to_string(), json!(now)));
        let data: BTreeMap<String, Value> = gone.chain(new).collect();
        let seen = ObjectMeta {
            resource_version: None,
            ..live.metadata
        };
        let kind = Kind {
            resource: ApiResource::erase::<ConfigMap>(&()),
            namespaced: true,
        };
        let change = json!({"data": data});
        tools.hand.merge(&kind, &seen, None, change).await.map(drop)
    }
}

fn freed(map: &ConfigMap) -> BTreeMap<i32, Timestamp> {
    map.data.as_ref().map(read).unwrap_or_default()
}

fn recorded(service: &ElastiService) -> &[ResolverPort] {
    let status = service.status.as_ref();
    status.map(|status| &*status.ports).unwrap_or_default()
}

fn holder(service: &ElastiService) -> Holder {
    Holder {
        created: service.creation_timestamp().map(|time| time.0),
        uid: service.uid().unwrap_or_default(),
    }
}
