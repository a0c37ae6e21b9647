//! The caches of the custom resources.

use std::sync::Arc;

use neap_kit::{
    builder::ControllerBuilder,
    key::Key,
    watch::{Cache, Selection, WatchesStopped},
};

use crate::{
    api::{
        BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
    },
    farm::{Component, ComponentKind, component::components},
};

/// The caches of the five kinds. Cheap to clone.
#[derive(Clone)]
pub(super) struct ComponentCaches {
    pub(super) schedulers: Cache<BuildbarnScheduler>,
    pub(super) workers: Cache<BuildbarnWorker>,
    pub(super) storages: Cache<BuildbarnStorage>,
    pub(super) frontends: Cache<BuildbarnFrontend>,
    pub(super) browsers: Cache<BuildbarnBrowser>,
}

/// The objects that a reconcile is about.
#[derive(Clone)]
pub(crate) enum Reconciled {
    Scheduler(Arc<BuildbarnScheduler>),
    Worker(Arc<BuildbarnWorker>),
    Storage(Arc<BuildbarnStorage>),
    Frontend(Arc<BuildbarnFrontend>),
    Browser(Arc<BuildbarnBrowser>),
}

impl ComponentCaches {
    pub(super) fn new(builder: &mut ControllerBuilder) -> Result<Self, WatchesStopped> {
        let all = Selection::default();
        Ok(Self {
            schedulers: builder.scoped(&all, false)?,
            workers: builder.scoped(&all, false)?,
            storages: builder.scoped(&all, false)?,
            frontends: builder.scoped(&all, false)?,
            browsers: builder.scoped(&all, false)?,
        })
    }

    pub(super) async fn synced(&self) {
        self.schedulers.synced().await;
        self.workers.synced().await;
        self.storages.synced().await;
        self.frontends.synced().await;
        self.browsers.synced().await;
    }

    /// The component as the object that was read.
    pub(super) fn object(&self, kind: ComponentKind, key: &Key) -> Option<Reconciled> {
        Some(match kind {
            ComponentKind::Scheduler => Reconciled::Scheduler(self.schedulers.get(key)?),
            ComponentKind::Worker => Reconciled::Worker(self.workers.get(key)?),
            ComponentKind::Storage => Reconciled::Storage(self.storages.get(key)?),
            ComponentKind::Frontend => Reconciled::Frontend(self.frontends.get(key)?),
            ComponentKind::Browser => Reconciled::Browser(self.browsers.get(key)?),
        })
    }

    pub(super) fn get(&self, kind: ComponentKind, key: &Key) -> Option<Component> {
        Some(match self.object(kind, key)? {
            Reconciled::Scheduler(object) => Component::from(&*object),
            Reconciled::Worker(object) => Component::from(&*object),
            Reconciled::Storage(object) => Component::from(&*object),
            Reconciled::Frontend(object) => Component::from(&*object),
            Reconciled::Browser(object) => Component::from(&*object),
        })
    }

    /// All components of a namespace, in the order of a roll-out.
    pub(super) fn list(&self, namespace: &str) -> Vec<Component> {
        let mut all: Vec<Component> = components(&self.storages.list(namespace)).collect();
        all.extend(components(&self.schedulers.list(namespace)));
        all.extend(components(&self.workers.list(namespace)));
        all.extend(components(&self.frontends.list(namespace)));
        all.extend(components(&self.browsers.list(namespace)));
        all.sort_by(|one, other| (one.kind, one.name()).cmp(&(other.kind, other.name())));
        all
    }
}
