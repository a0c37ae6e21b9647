//! What every controller is given: a client, the watches, leadership and a clock.

#[cfg(test)]
mod tests;

use std::{fmt, hash::Hash};

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::{
    apply::{Object, Writer},
    clock::Clock,
    controller::{Controller, ControllerOptions},
    event::EventRecorder,
    lease::Leadership,
    watch::{Cache, Selection, Trim, Watches, WatchesStopped},
};

/// The dependencies of every controller of a process. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// For reads of objects that are not cached. Writes go through [`Self::writer`].
    pub client: Client,
    /// The caches, shared by all controllers.
    pub watches: Watches,
    /// Whether this process may write.
    pub leadership: Leadership,
    /// The clock of the process.
    pub clock: Clock,
}

impl Context {
    /// A writer with the field manager `manager`.
    pub fn writer(&self, manager: &str) -> Writer {
        let (client, leadership) = (self.client.clone(), self.leadership.clone());
        let process = self.watches.process();
        let writer = Writer::new(client, manager, leadership, self.clock)
            .in_cluster(self.watches.cluster().clone())
            .with_telemetry(process.telemetry().clone());
        match process.write_observer() {
            Some(write_observer) => writer.with_write_observer(write_observer.clone()),
            None => writer,
        }
    }

    /// The same for another cluster: with a client of that cluster, caches of its own, and the leadership,
    /// telemetry and audit of this process. Two clusters must not have one name.
    pub fn in_cluster(&self, name: &str, client: Client) -> Self {
        Self {
            client,
            watches: self.watches.in_cluster(name),
            ..self.clone()
        }
    }

    /// A recorder of Events whose source is `component`.
    pub fn event_recorder(&self, component: &'static str) -> EventRecorder {
        EventRecorder::new(self.writer(component), component, self.clock)
    }

    /// A controller that starts no reconcile while another process leads, does not reconcile a key
    /// again before the watches show what was written for it, and whose queue is part of the metrics
    /// and the debug state of this process.
    pub fn controller<K>(&self, options: ControllerOptions) -> Controller<K>
    where
        K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    {
        let process = self.watches.process();
        let controller = Controller::new(options, self.clock)
            .with_leadership(self.leadership.clone())
            .with_telemetry(process.telemetry().clone())
            .with_watches(self.watches.clone());
        process.add_queue(controller.view());
        controller
    }

    /// The cache of all objects of a kind.
    pub fn cache<K>(&self) -> Result<Cache<K>, WatchesStopped>
    where
        K: Object + 'static,
    {
        let api = Api::all(self.client.clone());
        self.watches.cache(api, Selection::default())
    }

    /// The cache of the objects of a kind in the namespaces that this process watches: all, or those
    /// that its watches are restricted to.
    pub fn scoped_cache<K>(&self, selection: &Selection) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let watches = &self.watches;
        self.in_scope(|api| watches.cache(api, selection.clone()))
    }

    /// The same, of which only what `trim` leaves is kept in memory.
    pub fn scoped_trimmed_cache<K>(
        &self,
        selection: &Selection,
        trim: Trim<K>,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let watches = &self.watches;
        self.in_scope(|api| watches.trimmed_cache(api, selection.clone(), trim))
    }

    /// One cache of all namespaces, or of those that the watches are restricted to.
    fn in_scope<K>(
        &self,
        cache: impl Fn(Api<K>) -> Result<Cache<K>, WatchesStopped>,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let watches = &self.watches;
        if watches.namespaces().is_empty() {
            return cache(Api::all(self.client.clone()));
        }
        let parts = watches.namespaces().iter().map(|namespace| {
            let api = Api::namespaced(self.client.clone(), namespace);
            Ok((namespace.clone(), cache(api)?))
        });
        watches.union(parts.collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("watches", &self.watches)
            .field("leadership", &self.leadership)
            .finish_non_exhaustive()
    }
}
