//! Keeps the table as the objects are.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::{core::v1::Service as KubernetesService, discovery::v1::EndpointSlice};
use kube::{Api, Client};
use neap_kit::{
    clock::Clock,
    watch::{Cache, Ended, Selection, Watches},
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::routes::{Defaults, Lingering, Objects, PRIVATE, Table};
use crate::api::ElastiService;

/// The watches that a table is made from.
#[derive(Debug)]
pub struct Follow {
    scopes: Vec<Scope>,
    defaults: Defaults,
    clock: Clock,
    changed: Arc<Notify>,
    publish: watch::Sender<Arc<Table>>,
}

/// One namespace, or all of them.
#[derive(Debug)]
struct Scope {
    elasti_services: Cache<ElastiService>,
    services: Cache<KubernetesService>,
    slices: Cache<EndpointSlice>,
}

impl Follow {
    /// Follows what is in `namespaces`, or in all of them if none is named.
    pub fn new(
        client: &Client,
        watches: &Watches,
        namespaces: &[String],
        defaults: Defaults,
        publish: watch::Sender<Arc<Table>>,
    ) -> Result<Self, Ended> {
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

    /// Publishes a table for every change until told to stop; changes that come together make one.
    pub async fn run(self, stop: CancellationToken) {
        for scope in &self.scopes {
            tokio::select! {
                () = stop.cancelled() => return,
                () = scope.synced() => {}
            }
        }
        // Nothing is published before everything is known: a port that is missing would be closed.
        let mut lingering = Lingering::default();
        loop {
            let objects = self.objects();
            let before = self.publish.borrow().clone();
            let mut table = Table::of(&objects, self.defaults, &before);
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

    fn objects(&self) -> Objects {
        let mut objects = Objects::default();
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
    ) -> Result<Self, Ended> {
        let private = Selection {
            labels: Some(format!("{PRIVATE}=true")),
            fields: None,
        };
        let scope = Self {
            elasti_services: watches.of(api(client, namespace), Selection::default())?,
            services: watches.of(api(client, namespace), private.clone())?,
            slices: watches.of(api(client, namespace), private)?,
        };
        let notify = changed.clone();
        scope.elasti_services.follow(move |_| notify.notify_one());
        let notify = changed.clone();
        scope.services.follow(move |_| notify.notify_one());
        let notify = changed.clone();
        scope.slices.follow(move |_| notify.notify_one());
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
