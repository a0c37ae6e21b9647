//! The server that runs begin with.

use std::time::Duration;

use kube::Client;
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    store::{Retention, Store},
};

use crate::{canary, canonical::collection, paused, poison, run::send};

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not open.
    #[error("the server cannot be opened")]
    Closed(#[from] Box<neap_pocket::Error>),
    /// There is nowhere to play.
    #[error("no runtime can be started")]
    NoRuntime(#[from] std::io::Error),
    /// It does not take what every run begins with.
    #[error("the server refuses a Secret or a namespace")]
    Refused(#[from] Box<kube::Error>),
}

/// A server with what every cluster has, made once and copied for each run.
#[derive(Debug)]
pub struct Ground {
    store: Store,
}

/// The whole history of a run is kept: oracles read it.
const ALL: Retention = Retention {
    bytes: 1 << 30,
    age: Duration::from_hours(24 * 365),
};

impl Ground {
    /// Prepares the server, where there is no runtime yet.
    pub fn ready() -> Result<Self, Error> {
        paused(Self::prepare())?
    }

    /// Prepares the server.
    pub async fn prepare() -> Result<Self, Error> {
        let mut options = Options::new(Environment::rehearsal(0));
        options.retention = ALL;
        let pocket = Pocket::open(options).await.map_err(Box::new)?;
        let user = Client::new(pocket.service(), "default");
        // The namespace is there whether a run needs it or not, so that neither kind of run has
        // taken more chances than the other before it begins.
        for object in [canary::secret(), poison::namespace()] {
            let made = send(&user, "POST", &collection(&object), &object).await;
            made.map_err(Box::new)?;
        }
        let store = pocket.store().fork();
        pocket.close();
        Ok(Self { store })
    }

    /// A copy to play on. Chances come from `seed`.
    pub(crate) async fn copy(&self, seed: u64) -> Result<Pocket, neap_pocket::Error> {
        let mut options = Options::new(Environment::rehearsal(seed));
        options.retention = ALL;
        options.storage = Storage::Store(self.store.fork());
        Pocket::open(options).await
    }

    pub(crate) fn revision(&self) -> u64 {
        self.store.revision()
    }
}
