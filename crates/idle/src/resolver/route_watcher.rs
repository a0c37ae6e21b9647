//! Rebuilds the route table whenever its objects change.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Client};
use neap_kit::{
    clock::Clock,
    watch::{Cache, Selection, Watches, WatchesStopped},
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::routes::{
    PRIVATE_SERVICE_LABEL, RetiredRoutes, RouteDefaults, RouteObjects, RouteTable,
};
use crate::api::ElastiService;

/// The caches that the route table is built from.
#[derive(Debug)]
pub struct RouteWatcher {
    scopes: Vec<Scope>,
    defaults: RouteDefaults,
    clock: Clock,
    changed: Arc<Notify>,
    publish: watch::Sender<Arc<RouteTable>>,
}

/// The caches of one namespace, or of all.
#[derive(Debug)]
struct Scope {
    elasti_services: Cache<ElastiService>,
    services: Cache<Service>,
    slices: Cache<EndpointSlice>,
}

impl RouteWatcher {
    /// Watches `namespaces`, or all of them if the list is empty.
    pub fn new(
        client: &Client,
        watches: &Watches,
        namespaces: &[String],
        defaults: RouteDefaults,
        publish: watch::Sender<Arc<RouteTable>>,
    ) -> Result<Self, WatchesStopped> {
        let changed = Arc::new(Notify::new());
        let scopes = if namespaces.is_empty() {
            vec![Scope::new(client, watches, None, &changed)?]
        } else {
            let each = namespaces.iter();
            each.map(|namespace| Scope::new(client, watches, Some(namespace), &changed))
                .collect::<Result<_, _>>()?
        };
        Ok(Self {
            scopes,
            defaults,
            clock: watches.clock(),
            changed,
            publish,
        })
    }

    /// Publishes a table for every change until `stop` is cancelled; concurrent changes share one table.
    pub async fn run(self, stop: CancellationToken) {
        for scope in &self.scopes {
            tokio::select! {
                () = stop.cancelled() => return,
                () = scope.synced() => {}
            }
        }
        // The first table waits for all caches: a port that is missing from a table is closed.
        let mut lingering = RetiredRoutes::default();
        loop {
            let objects = self.objects();
            let before = self.publish.borrow().clone();
            let mut table = RouteTable::build(&objects, self.defaults, &before);
            let over = lingering.add(&mut table, &before, self.clock.uptime());
            self.publish.send_replace(Arc::new(table));
            let over = async {
                match over {
                    Some(over) => self.clock.sleep_until(over).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = over => {}
            }
        }
    }

    fn objects(&self) -> RouteObjects {
        let mut objects = RouteObjects::default();
        for scope in &self.scopes {
            objects
                .elasti_services
                .extend(scope.elasti_services.list(""));
            objects.services.extend(scope.services.list(""));
            objects.slices.extend(scope.slices.list(""));
        }
        objects
    }
}

impl Scope {
    fn new(
        client: &Client,
        watches: &Watches,
        namespace: Option<&str>,
        changed: &Arc<Notify>,
    ) -> Result<Self, WatchesStopped> {
        let private = Selection {
            labels: Some(format!("{PRIVATE_SERVICE_LABEL}=true")),
            fields: None,
        };
        let scope = Self {
            elasti_services: watches.cache(api(client, namespace), Selection::default())?,
            services: watches.cache(api(client, namespace), private.clone())?,
            slices: watches.cache(api(client, namespace), private)?,
        };
        let notify = changed.clone();
        scope
            .elasti_services
            .subscribe(move |_| notify.notify_one());
        let notify = changed.clone();
        scope.services.subscribe(move |_| notify.notify_one());
        let notify = changed.clone();
        scope.slices.subscribe(move |_| notify.notify_one());
        Ok(scope)
    }

    async fn synced(&self) {
        self.elasti_services.synced().await;
        self.services.synced().await;
        self.slices.synced().await;
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}
