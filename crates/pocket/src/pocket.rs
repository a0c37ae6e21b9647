//! The server as its embedder uses it.

use std::{fmt, path::PathBuf, sync::Arc};

use crate::{
    access::Authorizer,
    admission::{Dial, Phase},
    environment::Environment,
    housekeeping::Housekeeper,
    identity::{AccountTokens, ISSUER, SigningKey},
    kinds::{DEFINITIONS, Settings},
    rest::{Machine, Registry},
    runtime::PodRuntime,
    status::ApiError,
    store::{
        Hooks, Object, Retention, Store, View,
        journal::{self, Disk, FolderDisk},
    },
    wire::Service,
};

/// Where objects are stored.
#[derive(Debug)]
pub enum Storage {
    /// In memory, the first write getting the revision after this one.
    Memory(u64),
    /// In a data folder.
    Folder(PathBuf),
    /// On an implementation of [`Disk`].
    Disk(Box<dyn Disk>),
    /// In an open store, such as a fork of another.
    Store(Store),
}

/// Options of a server.
pub struct Options {
    /// Clock, randomness and tasks.
    pub environment: Environment,
    pub storage: Storage,
    /// Settings that rules depend on.
    pub settings: Settings,
    pub retention: Retention,
    /// The pod runtime, if there is one.
    pub runtime: Option<Arc<dyn PodRuntime>>,
    /// The certificate authority, in PEM, that is published in every namespace.
    pub root_ca: Option<String>,
    /// How webhooks are called; over TCP by default.
    pub dial: Option<Arc<dyn Dial>>,
    /// The port of the `kubernetes` service's target.
    pub port: u16,
    /// Host and port where clients reach the server; `port` of this machine by default.
    pub advertised: Option<String>,
    /// The issuer of service account tokens.
    pub issuer: String,
    /// The key that signs them; by default a key that lasts as long as the server is generated when
    /// needed.
    pub signing_key: Option<SigningKey>,
}

impl Options {
    /// A server in memory with default options.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            storage: Storage::Memory(0),
            settings: Settings::default(),
            retention: Retention::default(),
            runtime: None,
            root_ca: None,
            dial: None,
            port: 6443,
            advertised: None,
            issuer: ISSUER.into(),
            signing_key: None,
        }
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] journal::Error),
    /// The initial objects could not be created.
    #[error("the initial objects could not be created")]
    Bootstrap(#[source] ApiError),
}

/// A running server. Dropping it leaves its tasks running; [`Pocket::close`] ends them.
#[derive(Clone)]
pub struct Pocket {
    machine: Machine,
    service: Service,
}

impl Pocket {
    /// Opens the storage, creates the objects that every cluster has and starts housekeeping.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let environment = options.environment;
        let lent = matches!(options.storage, Storage::Store(_));
        let store = match options.storage {
            Storage::Memory(revision) => Store::in_memory(revision, options.retention),
            Storage::Folder(folder) => {
                let disk = Box::new(FolderDisk::open(folder)?);
                Store::durable(disk, options.retention, environment.clock.now())?
            }
            Storage::Disk(disk) => {
                Store::durable(disk, options.retention, environment.clock.now())?
            }
            Storage::Store(store) => store,
        };
        let mut opening = Opening((!lent).then(|| store.clone()));
        let registry = Arc::new(Registry::built_in(options.runtime.is_some()));
        let served = registry.clone();
        // Runs with the commit and not after the request, whose client may be gone by then.
        let follower = move |change, definition: &Object| served.follow(change, definition);
        store.follow(DEFINITIONS, Box::new(follower));
        let access = Authorizer::default();
        access.follow(&store);
        let machine = Machine::new(environment, View::of(store), registry, options.settings)
            .with_runtime(options.runtime)
            .with_access(access)
            .with_root_ca(options.root_ca.map(Into::into))
            .with_accounts(AccountTokens::new(options.issuer, options.signing_key))
            .with_dial(options.dial);
        for phase in Phase::ALL {
            let hooks = machine.hooks.clone();
            let follower = move |change, object: &Object| hooks.follow(phase, change, object);
            machine
                .view
                .store()
                .follow(phase.bucket(), Box::new(follower));
        }
        machine
            .bootstrap(options.port)
            .await
            .map_err(Error::Bootstrap)?;
        opening.0 = None;
        let keeper = Housekeeper::new(machine.clone());
        let spawner = machine.environment.spawner.clone();
        spawner.spawn("housekeeping", Box::pin(keeper.run()));
        let here = || format!("127.0.0.1:{}", options.port);
        let address = options.advertised.unwrap_or_else(here);
        let service = Service::new(machine.clone(), address);
        Ok(Self { machine, service })
    }

    /// The server as a service for callers in this process, who are allowed everything.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// The same server over another view of the store, which may lag and be hooked.
    pub fn service_over(&self, view: View) -> Service {
        self.service.with_machine(self.machine.with_view(view))
    }

    /// A new view of the store, for [`Self::service_over`].
    pub fn view(&self, hooks: Option<Arc<dyn Hooks>>) -> View {
        self.machine.view.another(hooks)
    }

    /// The underlying store.
    pub fn store(&self) -> &Store {
        self.machine.view.store()
    }

    /// Flushes everything to disk and stops the writer; later writes are refused.
    pub fn close(&self) {
        self.store().close();
    }
}

/// A store that is closed unless the server starts, so that its folder can be opened again.
struct Opening(Option<Store>);

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(store) = &self.0 {
            store.close();
        }
    }
}

impl fmt::Debug for Pocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pocket")
            .field("store", self.store())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_cannot_start_lets_go_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(Environment::simulated(1));
        options.storage = Storage::Folder(folder.path().into());
        // No address is left for the server's own Service.
        options.settings.service_range.1 = 32;
        let failed = Pocket::open(options).await;
        assert!(matches!(failed, Err(Error::Bootstrap(_))), "{failed:?}");
        FolderDisk::open(folder.path()).unwrap();
    }

    #[tokio::test]
    async fn a_closed_server_in_memory_takes_no_writes_and_ends_its_tasks() {
        let options = Options::new(Environment::simulated(1));
        let pocket = Pocket::open(options).await.unwrap();
        let tasks = || {
            let runtime = tokio::runtime::Handle::current();
            runtime.metrics().num_alive_tasks()
        };
        assert!(tasks() > 0);
        // Housekeeping starts, and waits for something to do.
        tokio::task::yield_now().await;
        pocket.close();
        while tasks() > 0 {
            tokio::task::yield_now().await;
        }
        let own = serde_json::json!({"metadata": {"name": "late"}});
        let refused = pocket.machine.create_own("/namespaces", "", own).await;
        assert!(refused.is_err());
    }
}
