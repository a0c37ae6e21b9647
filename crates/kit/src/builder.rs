//! Builds controllers: the caches they read, the changes that enqueue keys, the tools they write
//! with.
//!
//! A controller states its name, its primary kind, which changes of other kinds enqueue which keys,
//! and its reconcile. The rest is the same for all and is here: it waits until its caches are synced,
//! starts no reconcile while another process leads, and requeues a key after a conflict.

mod tools;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

pub use self::tools::Tools;
use crate::{
    apply::Object,
    context::Context,
    controller::{
        Controller, ControllerOptions, Enqueuer, FailureClass, Outcome, ReconcileError,
        ReconcileFailure,
    },
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, CachedObject, Change, Selection, Trim, WatchesStopped},
};

/// How long a write may take until the watch shows it; also the delay after which a key whose write
/// conflicted is reconciled again. A late watch does no harm: the same facts lead to the same decision.
pub const OWN_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A controller under construction.
pub struct ControllerBuilder {
    context: Context,
    name: &'static str,
    controller: Controller<Key>,
    /// Held until the component has ended: what subscribes for it is forgotten then.
    life: Arc<()>,
    synced: Vec<BoxFuture<'static, ()>>,
}

impl ControllerBuilder {
    /// The controller `name`, with default settings.
    pub fn new(context: &Context, name: &'static str) -> Self {
        Self::with(context, ControllerOptions::new(name))
    }

    /// A controller with these settings.
    pub fn with(context: &Context, options: ControllerOptions) -> Self {
        Self {
            context: context.clone(),
            name: options.name,
            controller: context.controller(options),
            life: Arc::default(),
            synced: Vec::new(),
        }
    }

    /// The writer, event recorder and clock of the controller.
    pub fn tools(&self) -> Tools {
        Tools::new(&self.context, self.name)
    }

    /// The cache of the primary kind: every change of an object enqueues its key.
    pub fn primary<K>(&mut self) -> Result<Cache<K>, WatchesStopped>
    where
        K: Object + 'static,
    {
        let cache = self.cache()?;
        self.on_change(&cache, |change: &Change<K>, enqueuer| {
            enqueuer.enqueue(change.key());
        });
        Ok(cache)
    }

    /// A cache that the reconcile reads. No reconcile starts before it is synced.
    pub fn cache<K>(&mut self) -> Result<Cache<K>, WatchesStopped>
    where
        K: Object + 'static,
    {
        let cache = self.context.cache::<K>()?;
        Ok(self.await_sync(cache))
    }

    /// A cache of a selection of objects, or of their metadata only.
    pub fn selected<K>(
        &mut self,
        api: Api<K>,
        selection: Selection,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.context.watches.cache(api, selection)?;
        Ok(self.await_sync(cache))
    }

    /// A cache of the objects of a kind in another form, for kinds of which there are very many: see
    /// [`Watches::compact_cache`](crate::watch::Watches::compact_cache).
    pub fn compact<S, K>(
        &mut self,
        api: Api<S>,
        selection: Selection,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        S: Resource,
        K: CachedObject + Clone + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.context.watches.compact_cache(api, selection)?;
        Ok(self.await_sync(cache))
    }

    /// A cache that keeps of each object what `trim` leaves.
    pub fn trimmed<K>(
        &mut self,
        api: Api<K>,
        selection: Selection,
        trim: Trim<K>,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.context.watches.trimmed_cache(api, selection, trim)?;
        Ok(self.await_sync(cache))
    }

    /// A cache of the namespaces that this process watches; of the primary kind if `primary`.
    pub fn scoped<K>(
        &mut self,
        selection: &Selection,
        primary: bool,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.context.scoped_cache(selection)?;
        if primary {
            self.on_change(&cache, |change: &Change<K>, enqueuer| {
                enqueuer.enqueue(change.key());
            });
        }
        Ok(self.await_sync(cache))
    }

    /// A cache of the namespaces that this process watches, which keeps of each object what `trim` leaves.
    pub fn scoped_trimmed<K>(
        &mut self,
        selection: &Selection,
        trim: Trim<K>,
    ) -> Result<Cache<K>, WatchesStopped>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.context.scoped_trimmed_cache(selection, trim)?;
        Ok(self.await_sync(cache))
    }

    fn await_sync<K: CachedObject + Send + Sync + 'static>(&mut self, cache: Cache<K>) -> Cache<K> {
        let synced = cache.clone();
        planted!(KnownTooEarly => return cache);
        self.synced
            .push(Box::pin(async move { synced.synced().await }));
        cache
    }

    /// Delays the first reconcile until `ready` has resolved.
    pub fn wait_for(&mut self, ready: impl Future<Output = ()> + Send + 'static) {
        self.synced.push(Box::pin(ready));
    }

    /// The handle that enqueues keys.
    pub fn enqueuer(&self) -> Enqueuer<Key> {
        self.controller.enqueuer()
    }

    /// Calls `handler` for every change in `cache`, to enqueue the keys that it concerns.
    pub fn on_change<K>(
        &self,
        cache: &Cache<K>,
        handler: impl Fn(&Change<K>, &Enqueuer<Key>) + Send + Sync + 'static,
    ) where
        K: CachedObject + Send + Sync + 'static,
    {
        let enqueuer = self.controller.enqueuer();
        let life = Arc::downgrade(&self.life);
        let is_alive = move || life.strong_count() > 0;
        cache.subscribe_while(is_alive, move |change| handler(change, &enqueuer));
    }

    /// The component that runs `reconcile` with `state` for every key. It may fail with
    /// [`apply::Error`](crate::apply::Error) or with the area's own error: see [`ReconcileError`].
    pub fn build<S, F, E>(
        self,
        state: S,
        reconcile: impl Fn(Arc<S>, Key) -> F + Copy + Send + 'static,
    ) -> Component
    where
        S: Send + Sync + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: ReconcileError,
    {
        let (state, synced) = (Arc::new(state), join_all(self.synced));
        let (controller, life) = (self.controller, self.life);
        Component::new(self.name, move |stop| async move {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = synced => {}
            }
            let reconcile = move |key| {
                let result = reconcile(state.clone(), key);
                async move { requeue_conflict(result.await) }
            };
            controller.run_failing(reconcile, stop).await;
            drop(life);
        })
    }
}

/// Retries a conflict of any write of a reconcile, also of a status write: the key is reconciled again from
/// what the caches show then. A conflict is not a failure: the change that caused it enqueues the key again,
/// and if that kind is not watched, the delay does.
fn requeue_conflict<E: ReconcileError>(
    result: Result<Outcome, E>,
) -> Result<Outcome, ReconcileFailure> {
    let failure = match result {
        Ok(outcome) => return Ok(outcome),
        Err(error) => ReconcileFailure::of(&error),
    };
    if failure.class != FailureClass::Conflict {
        return Err(failure);
    }
    planted!(ReplacedIsSettled => return Ok(Outcome::Done));
    planted!(ReplacedAtOnce => return Ok(Outcome::RequeueAfter(Duration::ZERO)));
    Ok(Outcome::RequeueAfter(OWN_WRITE_TIMEOUT))
}

impl fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
