//! How a controller is put together: what it reads, what makes it look, and what it writes with.
//!
//! A controller states its name, whose keys it looks at, which changes elsewhere concern which of
//! them, and its reconcile. That it waits for what it reads, begins nothing while another process
//! leads, and is called back when a write came too late, is the same for all and is here.

mod tools;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

pub use self::tools::Tools;
use crate::{
    apply::{Error, Object},
    controller::{Controller, Options, Outcome, Trigger},
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Change, Ended, Lenient, Selection},
};

/// So long a write may take to come back by the watch. Late is no harm: whatever is chosen again is
/// chosen the same.
pub const ECHO: Duration = Duration::from_secs(5);

/// A controller in the making.
pub struct Wiring {
    site: Site,
    name: &'static str,
    controller: Controller<Key>,
    known: Vec<BoxFuture<'static, ()>>,
}

impl Wiring {
    /// The controller `name`, with the usual settings.
    pub fn new(site: &Site, name: &'static str) -> Self {
        Self::with(site, Options::new(name))
    }

    /// The same with other settings.
    pub fn with(site: &Site, options: Options) -> Self {
        Self {
            site: site.clone(),
            name: options.name,
            controller: site.controller(options),
            known: Vec::new(),
        }
    }

    /// What it writes and tells with.
    pub fn tools(&self) -> Tools {
        Tools::new(&self.site, self.name)
    }

    /// The objects it looks after: whatever changes among them is looked at.
    pub fn kept<K>(&mut self) -> Result<Cache<K>, Ended>
    where
        K: Object + 'static,
    {
        let cache = self.read()?;
        self.follow(&cache, |change: &Change<K>, trigger| {
            trigger.changed(change.key());
        });
        Ok(cache)
    }

    /// Objects that it reads. Nothing is looked at before all of them are known.
    pub fn read<K>(&mut self) -> Result<Cache<K>, Ended>
    where
        K: Object + 'static,
    {
        let cache = self.site.all::<K>()?;
        Ok(self.known(cache))
    }

    /// The same for some of a kind, or their metadata alone. What is written to them is not waited
    /// for, since nobody can say that the watch will ever show it.
    pub fn select<K>(
        &mut self,
        api: Api<Lenient<K>>,
        selection: Selection,
    ) -> Result<Cache<K>, Ended>
    where
        K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.site.watches.of(api, selection)?;
        Ok(self.known(cache))
    }

    /// Objects that it reads where its process looks, and the objects it looks after if `kept`.
    pub fn here<K>(&mut self, selection: &Selection, kept: bool) -> Result<Cache<K>, Ended>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let cache = self.site.here(selection)?;
        if kept {
            self.follow(&cache, |change: &Change<K>, trigger| {
                trigger.changed(change.key());
            });
        }
        Ok(self.known(cache))
    }

    fn known<K: Resource + Send + Sync + 'static>(&mut self, cache: Cache<K>) -> Cache<K> {
        let known = cache.clone();
        planted!(KnownTooEarly => return cache);
        self.known
            .push(Box::pin(async move { known.synced().await }));
        cache
    }

    /// Nothing is looked at before this is done, either.
    pub fn once(&mut self, done: impl Future<Output = ()> + Send + 'static) {
        self.known.push(Box::pin(done));
    }

    /// What asks it to look at a key.
    pub fn trigger(&self) -> Trigger<Key> {
        self.controller.trigger()
    }

    /// Has `tell` say which keys a change concerns.
    pub fn follow<K>(
        &self,
        cache: &Cache<K>,
        tell: impl Fn(&Change<K>, &Trigger<Key>) + Send + Sync + 'static,
    ) where
        K: Resource + Send + Sync + 'static,
    {
        let trigger = self.controller.trigger();
        cache.follow(move |change| tell(change, &trigger));
    }

    /// The controller that does `reconcile` with `work`.
    pub fn service<W, F>(
        self,
        work: W,
        reconcile: impl Fn(Arc<W>, Key) -> F + Copy + Send + 'static,
    ) -> Service
    where
        W: Send + Sync + 'static,
        F: Future<Output = Result<Outcome, Error>> + Send + 'static,
    {
        let (work, known) = (Arc::new(work), join_all(self.known));
        let controller = self.controller;
        Service::new(self.name, move |stop| async move {
            let known = async {
                known.await;
            };
            let reconcile = move |key| {
                let looked = reconcile(work.clone(), key);
                async move { unless_replaced(looked.await) }
            };
            controller.run_once_known(known, reconcile, stop).await;
        })
    }
}

/// A write to what has changed since it was read is no failure: the change itself asks for another
/// look, and where nobody follows it, time does.
fn unless_replaced(looked: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match looked {
        Err(Error::Replaced(_)) if planted!(ReplacedIsSettled) => Ok(Outcome::Settled),
        Err(Error::Replaced(_)) if planted!(ReplacedAtOnce) => Ok(Outcome::Again(Duration::ZERO)),
        Err(Error::Replaced(_)) => Ok(Outcome::Again(ECHO)),
        looked => looked,
    }
}

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
