//! The prepared API server that every run starts from.

use std::time::Duration;

use kube::Client;
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    store::{Retention, Store},
};

use crate::{canary, canonical::collection, paused, poisoned_objects, run::send};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server does not open.
    #[error("the server cannot be opened")]
    Closed(#[from] Box<neap_pocket::Error>),
    /// The runtime does not start.
    #[error("no runtime can be started")]
    NoRuntime(#[from] std::io::Error),
    /// The server refuses an object that every run starts with.
    #[error("the server refuses a Secret or a namespace")]
    Refused(#[from] Box<kube::Error>),
}

/// A server with the objects that every cluster has, prepared once and copied for each run.
#[derive(Debug)]
pub struct ClusterTemplate {
    store: Store,
}

/// Retains the whole history of a run, which the oracles read.
const UNLIMITED_RETENTION: Retention = Retention {
    bytes: 1 << 30,
    age: Duration::from_hours(24 * 365),
};

impl ClusterTemplate {
    /// Prepares the server, for callers without a runtime.
    pub fn prepare_blocking() -> Result<Self, Error> {
        paused(Self::prepare())?
    }

    pub async fn prepare() -> Result<Self, Error> {
        let mut options = Options::new(Environment::simulated(0));
        options.retention = UNLIMITED_RETENTION;
        let pocket = Pocket::open(options).await.map_err(Box::new)?;
        let user = Client::new(pocket.service(), "default");
        // The namespace exists whether a run needs it or not: both kinds of run must have drawn the
        // same random numbers before they start.
        for object in [canary::secret(), poisoned_objects::namespace()] {
            let made = send(&user, "POST", &collection(&object), &object).await;
            made.map_err(Box::new)?;
        }
        let store = pocket.store().fork();
        pocket.close();
        Ok(Self { store })
    }

    /// A copy for one run. Its random numbers come from `seed`.
    pub(crate) async fn copy(&self, seed: u64) -> Result<Pocket, neap_pocket::Error> {
        let mut options = Options::new(Environment::simulated(seed));
        options.retention = UNLIMITED_RETENTION;
        options.storage = Storage::Store(self.store.fork());
        Pocket::open(options).await
    }

    pub(crate) fn revision(&self) -> u64 {
        self.store.revision()
    }
}
