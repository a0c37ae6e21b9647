//! Ports that were somebody's until a moment ago.
//!
//! An ElastiService goes once its pods are proved to be reached from where resolvers are. A node whose
//! data plane lags behind may still lead to a resolver then, and whoever comes that way is carried to
//! the pods that were known last. Nobody else is given such a port for much longer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use neap_kit::{clock::Uptime, key::Key};

use super::{Pods, Route, Service, Table};

/// So long connections are taken on a port that is nobody's any more.
const LINGERS: Duration = Duration::from_secs(30);

/// What is no longer in the table that objects make.
#[derive(Debug, Default)]
pub(in crate::resolver) struct Lingering {
    gone: BTreeMap<u16, Gone>,
    /// The last pods of those that have none since then: what leads to them may go first.
    emptied: BTreeMap<Key, (Uptime, Arc<Pods>)>,
}

#[derive(Debug)]
struct Gone {
    until: Uptime,
    route: Arc<Route>,
    pods: Arc<Pods>,
}

impl Lingering {
    /// Adds to `table` what was in the one `before` until a moment ago; says when that is over for the
    /// first of it.
    pub(in crate::resolver) fn add(
        &mut self,
        table: &mut Table,
        before: &Table,
        now: Uptime,
    ) -> Option<Uptime> {
        self.emptied.retain(|_, (since, _)| *since + LINGERS > now);
        let gone = before.routes.iter();
        for (port, route) in gone.filter(|(port, _)| !table.routes.contains_key(port)) {
            let pods = self.pods(&route.service.key, before);
            self.gone
                .entry(*port)
                .or_insert_with(|| Gone::now(route, pods, now));
        }
        for (key, pods) in before.pods.iter().filter(|(_, pods)| !pods.is_empty()) {
            if table.pods.get(key).is_some_and(|now| now.is_empty()) {
                self.emptied.insert(key.clone(), (now, pods.clone()));
            }
        }
        self.gone
            .retain(|port, gone| gone.until > now && !table.routes.contains_key(port));
        for (port, gone) in &self.gone {
            let service = &gone.route.service;
            table.routes.insert(*port, gone.route.clone());
            // One that is back under its name has pods of its own.
            if !table.services.contains_key(&service.key) {
                table.services.insert(service.key.clone(), service.clone());
                table.pods.insert(service.key.clone(), gone.pods.clone());
            }
        }
        self.gone.values().map(|gone| gone.until).min()
    }

    fn pods(&self, service: &Key, before: &Table) -> Arc<Pods> {
        let pods = before.pods(service);
        match self.emptied.get(service) {
            Some((_, last)) if pods.is_empty() => last.clone(),
            _ => pods,
        }
    }
}

impl Gone {
    fn now(route: &Route, pods: Arc<Pods>, now: Uptime) -> Self {
        let service = Service {
            out_of_path: true,
            ..(*route.service).clone()
        };
        Self {
            until: now + LINGERS,
            pods,
            route: Arc::new(Route {
                service: Arc::new(service),
                port: route.port.clone(),
            }),
        }
    }
}
