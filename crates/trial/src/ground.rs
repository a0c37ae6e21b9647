//! The server that runs begin with.

use std::time::Duration;

use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    store::{Retention, Store},
};

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
    /// Prepares the server.
    pub async fn prepare() -> Result<Self, neap_pocket::Error> {
        let mut options = Options::new(Environment::rehearsal(0));
        options.retention = ALL;
        let pocket = Pocket::open(options).await?;
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
