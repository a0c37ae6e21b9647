//! Routes that stay for a while after their ElastiService is gone.
//!
//! An ElastiService is removed once probes from the resolvers reach its pods directly. The data plane of
//! another node may lag behind and still route to a resolver; such clients are forwarded to the last
//! known pods. The port is not assigned to another service until much later.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use neap_kit::{clock::Uptime, key::Key};

use super::{PodAddresses, Route, RouteTable, RoutedService};

/// How long a port without an ElastiService still accepts connections.
const RETIRED_ROUTE_GRACE: Duration = Duration::from_secs(30);

/// The routes that the objects no longer define.
#[derive(Debug, Default)]
pub(in crate::resolver) struct RetiredRoutes {
    gone: BTreeMap<u16, RetiredRoute>,
    /// The last pods of services that have none since then: the EndpointSlices may be deleted before the
    /// ElastiService.
    emptied: BTreeMap<Key, (Uptime, Arc<PodAddresses>)>,
}

#[derive(Debug)]
struct RetiredRoute {
    until: Uptime,
    route: Arc<Route>,
    pods: Arc<PodAddresses>,
}

impl RetiredRoutes {
    /// Adds the routes to `table` that were in `before` and are not retired for too long; returns when
    /// the first of them expires.
    pub(in crate::resolver) fn add(
        &mut self,
        table: &mut RouteTable,
        before: &RouteTable,
        now: Uptime,
    ) -> Option<Uptime> {
        self.emptied
            .retain(|_, (since, _)| *since + RETIRED_ROUTE_GRACE > now);
        let gone = before.routes.iter();
        for (port, route) in gone.filter(|(port, _)| !table.routes.contains_key(port)) {
            let pods = self.pods(&route.service.key, before);
            self.gone
                .entry(*port)
                .or_insert_with(|| RetiredRoute::now(route, pods, now));
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
            // A service that was created again under the same name has pods of its own.
            if !table.services.contains_key(&service.key) {
                table.services.insert(service.key.clone(), service.clone());
                table.pods.insert(service.key.clone(), gone.pods.clone());
            }
        }
        self.gone.values().map(|gone| gone.until).min()
    }

    fn pods(&self, service: &Key, before: &RouteTable) -> Arc<PodAddresses> {
        let pods = before.pods(service);
        match self.emptied.get(service) {
            Some((_, last)) if pods.is_empty() => last.clone(),
            _ => pods,
        }
    }
}

impl RetiredRoute {
    fn now(route: &Route, pods: Arc<PodAddresses>, now: Uptime) -> Self {
        let service = RoutedService {
            out_of_path: true,
            ..(*route.service).clone()
        };
        Self {
            until: now + RETIRED_ROUTE_GRACE,
            pods,
            route: Arc::new(Route {
                service: Arc::new(service),
                port: route.port.clone(),
            }),
        }
    }
}
