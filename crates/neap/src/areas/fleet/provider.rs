//! A provider in this process: its store, catalogue, backend and frontend as components.

use std::{
    fs::File,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::Client;
use neap_fleet::{
    backend::{Backend, BackendOptions},
    catalogue::Catalogue,
    cluster_api::{ClusterApi, NetworkConnector},
    documents::SECURE,
    enrichment::{Asker, Enrichment},
    http::{Authorizer, Frontend, PagingKey, Parts},
    install::{Hive, Installer, StepContext},
    validation::Region,
};
use neap_kit::{clock::Clock, manager::Component, telemetry::Telemetry, why::chain};
use neap_store::{KeyRing, Store, StoreOptions};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use crate::{
    exit::{Exit, Failure},
    up::private,
};

/// The address of a store that is lost when the process ends.
const MEMORY: &str = "memory:";

/// What a provider is started with.
#[derive(Debug)]
pub(super) struct ProviderOptions {
    /// `sqlite:FILE`, `postgres://…`, or `memory:`.
    pub(super) store: String,
    /// The folder of its keys.
    pub(super) folder: PathBuf,
    pub(super) location: String,
    pub(super) domain: String,
    /// Whether clusters are asked for what only they know.
    pub(super) enrich: bool,
    pub(super) authorizer: Authorizer,
    pub(super) readiness_delay: Duration,
    /// How often conditions are polled, instead of what their steps say.
    pub(super) condition_poll: Option<Duration>,
}

/// A provider that was opened.
pub(super) struct Provider {
    pub(super) store: Store,
    catalogue: Catalogue,
    telemetry: Telemetry,
    clock: Clock,
    options: ProviderOptions,
}

fn unusable(file: &Path, why: &str) -> Failure {
    let what = format!("cannot use the key {}", file.display());
    Failure::new("NT-FLEET-0012", Exit::Refused, &what, why)
        .remedy("restore the file: without it the secrets of clusters cannot be opened")
}

/// A key of 32 bytes in a file, in base64; none if there is no file.
fn existing_key(file: &Path) -> Result<Option<[u8; 32]>, Failure> {
    let text = private::read(file).map_err(|error| unusable(file, &error.to_string()))?;
    let Some(text) = text else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(text.trim()).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or_else(|| unusable(file, "it has not 32 bytes in base64"))?;
    Ok(Some(bytes))
}

/// The same, made if there is no file.
fn key(file: &Path) -> Result<[u8; 32], Failure> {
    if let Some(found) = existing_key(file)? {
        return Ok(found);
    }
    let mut bytes = [0; 32];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| unusable(file, "there is no randomness"))?;
    first_key(file, bytes)
}

/// Writes the key if there is no file, and returns that of the file: of two processes that start at once, both use
/// the key of the first.
fn first_key(file: &Path, made: [u8; 32]) -> Result<[u8; 32], Failure> {
    let failed = |error: io::Error| unusable(file, &error.to_string());
    let folder = file.parent().unwrap_or(Path::new("."));
    // It is created with mode 0600, and has its name only once it is complete.
    let mut written = NamedTempFile::new_in(folder).map_err(failed)?;
    let text = STANDARD.encode(made);
    written.write_all(text.as_bytes()).map_err(failed)?;
    written.as_file().sync_all().map_err(failed)?;
    if let Err(kept) = written.persist_noclobber(file)
        && kept.error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(failed(kept.error));
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed)?;
    existing_key(file)?.ok_or_else(|| unusable(file, "it was removed while it was read"))
}

/// The versions of the key that seals secrets, newest first: `encryption.key`, `encryption-2.key` and so on.
/// One whose file ends with `.next` only opens, so that no process seals with it before all know it.
/// The first start makes the folder and the first key.
fn sealing_keys(folder: &Path) -> Result<Vec<(String, [u8; 32])>, Failure> {
    private::create_folder(folder).map_err(|error| {
        let what = format!("cannot use the folder of keys {}", folder.display());
        Failure::new("NT-FLEET-0012", Exit::Refused, &what, &chain(&error))
            .remedy("choose a folder that you may write")
    })?;
    let mut keys = Vec::new();
    let first = folder.join("encryption.key");
    // A folder whose first version is lost goes on with the second one alone.
    if first.exists() || !folder.join("encryption-2.key").exists() {
        keys.push(("1".to_owned(), key(&first)?));
    }
    for version in 2.. {
        let name = format!("encryption-{version}.key");
        if let Some(found) = existing_key(&folder.join(&name))? {
            keys.insert(0, (version.to_string(), found));
            continue;
        }
        if let Some(next) = existing_key(&folder.join(format!("{name}.next")))? {
            keys.push((version.to_string(), next));
        }
        break;
    }
    Ok(keys)
}

/// Checks the address of the store before anything is started. Creates the file of SQLite.
pub(super) fn check_store(address: &str) -> Result<(), Failure> {
    if address == MEMORY {
        return Ok(());
    }
    Store::prepare(address).map_err(|error| {
        let what = "cannot use the store of the provider";
        Failure::new("NT-FLEET-0001", Exit::of_file(&error), what, &chain(&error))
            .remedy("correct the address: sqlite:FILE in a folder that exists and may be written, postgres://USER@HOST/DATABASE, or memory:")
    })
}

impl Provider {
    /// Opens the store.
    pub(super) async fn open(
        options: ProviderOptions,
        telemetry: Telemetry,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let keys = KeyRing::new(sealing_keys(&options.folder)?);
        let keys = keys.map_err(|error| store_failed(&error))?;
        let store_options = StoreOptions {
            keys,
            secure: SECURE,
        };
        let store = if options.store == MEMORY {
            Store::in_memory(
                store_options,
                Arc::new(move || clock.now().as_millisecond()),
            )
        } else {
            let opened = Store::open(&options.store, store_options).await;
            opened.map_err(|error| store_failed(&error))?
        };
        Ok(Self {
            catalogue: Catalogue::new(store.clone()),
            store,
            telemetry,
            clock,
            options,
        })
    }

    /// Reads the versions once, so that the first request finds them.
    pub(super) async fn read_versions(&self) -> Result<(), Failure> {
        let read = self.catalogue.read().await;
        read.map_err(|error| store_failed(&error))
    }

    /// The component that keeps the versions up to date, which frontend and backend need.
    pub(super) fn catalogue(&self) -> Component {
        self.catalogue.component("fleet-catalogue", self.clock)
    }

    /// The components that work on clusters. `hive` leads to the cluster on which Hive runs.
    pub(super) fn backend(&self, hive: Option<Client>) -> [Component; 2] {
        let clock = self.clock;
        let hive = hive.map(|client| Hive::new(ClusterApi::new(client, clock)));
        let context = StepContext {
            store: self.store.clone(),
            installer: hive.map(|hive| Arc::new(hive) as Arc<dyn Installer>),
            connector: Arc::new(NetworkConnector),
            versions: self.catalogue.clone(),
            location: self.options.location.clone(),
            domain: self.options.domain.clone(),
            clock,
        };
        // The process and a random part: leases of two backends never look alike.
        let owner = neap_kit::http::RequestId::random().0;
        let owner = format!("{}-{owner}", std::process::id());
        let options = BackendOptions {
            condition_poll: self.options.condition_poll,
            ..BackendOptions::new(owner)
        };
        let backend = Backend::new(context, options, self.telemetry.clone());
        [
            backend.component("fleet-backend"),
            backend.housekeeping("fleet-housekeeping"),
        ]
    }

    /// The routes of the frontend. Administrators read from Hive what it has.
    pub(super) fn router(&self, hive: Option<Client>) -> Result<Router, Failure> {
        let paging = key(&self.options.folder.join("paging.key"))?;
        let paging = PagingKey::new(&paging).ok_or_else(|| {
            Failure::new(
                "NT-FLEET-0012",
                Exit::Failed,
                "cannot use the paging key",
                "it was refused",
            )
        })?;
        let enrichment = if self.options.enrich {
            Enrichment::On(Asker {
                store: self.store.clone(),
                connector: Arc::new(NetworkConnector),
                clock: self.clock,
            })
        } else {
            Enrichment::Off
        };
        let frontend = Frontend::new(Parts {
            store: self.store.clone(),
            catalogue: self.catalogue.clone(),
            region: Region {
                location: self.options.location.clone(),
                domain: self.options.domain.clone(),
                small_workers: false,
            },
            authorizer: self.options.authorizer.clone(),
            paging,
            enrichment,
            commit: crate::version::NEAP.to_owned(),
            clock: self.clock,
            readiness_delay: self.options.readiness_delay,
        });
        let hive = hive.map(|client| Hive::new(ClusterApi::new(client, self.clock)));
        Ok(frontend.with_hive(hive).router(&self.telemetry))
    }
}

fn store_failed(error: &neap_store::Error) -> Failure {
    if let neap_store::Error::OtherKey(_) = error {
        let what = "cannot use the folder of keys";
        return Failure::new("NT-FLEET-0012", Exit::Refused, what, &chain(error)).remedy(
            "name the folder of the other processes with --keys (in neap up: keep the folder of --data), or restore it; if the key is lost, see docs/fleet/back-up-and-restore.md",
        );
    }
    let what = "cannot open the store of the fleet";
    Failure::new("NT-FLEET-0001", Exit::Refused, what, &chain(error))
        .remedy("check the address and the database that --store names")
}

/// Listens on `address`.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let what = format!("cannot listen on {address}");
        Failure::new("NT-FLEET-0011", Exit::Refused, &what, &error.to_string())
            .remedy("end the program that listens there, or choose another address")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_start_makes_the_folder_of_keys_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new/keys");
        let made = sealing_keys(&folder).unwrap();
        assert_eq!(sealing_keys(&folder).unwrap(), made);
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
    }

    #[test]
    fn of_two_first_starts_both_use_the_key_of_the_first() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("encryption.key");
        assert_eq!(first_key(&file, [1; 32]).unwrap(), [1; 32]);
        assert_eq!(first_key(&file, [2; 32]).unwrap(), [1; 32]);
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(&file, "damaged").unwrap();
        assert!(first_key(&file, [2; 32]).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "damaged");
    }

    #[tokio::test]
    async fn another_folder_of_keys_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("a.db").display());
        let open = async |keys: &str| {
            let options = ProviderOptions {
                store: store.clone(),
                folder: folder.path().join(keys),
                location: "local".to_owned(),
                domain: "local.example.com".to_owned(),
                enrich: false,
                authorizer: Authorizer::Development,
                readiness_delay: Duration::ZERO,
                condition_poll: None,
            };
            let opened = Provider::open(options, Telemetry::default(), Clock::system()).await;
            opened.map(drop)
        };
        open("keys").await.unwrap();
        let refused = open("others").await.unwrap_err();
        assert_eq!(refused.exit(), Exit::Refused);
        assert!(refused.to_string().contains("version 1"), "{refused}");
        assert!(refused.advice().contains("--keys"), "{}", refused.advice());
        open("keys").await.unwrap();
    }

    #[test]
    fn a_lost_first_key_is_not_made_again_beside_a_second_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = STANDARD.encode([2; 32]);
        private::write(&folder.path().join("encryption-2.key"), &text).unwrap();
        let keys = sealing_keys(folder.path()).unwrap();
        assert_eq!(keys, [("2".to_owned(), [2; 32])]);
    }

    #[test]
    fn an_address_of_a_store_that_cannot_work_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
        let exit = |address: &str| check_store(address).map_err(|failure| failure.exit());
        assert_eq!(exit("foo:bar"), Err(Exit::Refused));
        assert_eq!(exit(&below("none/a.db")), Err(Exit::NotFound));
        assert_eq!(exit(&below("")), Err(Exit::Refused));
        assert_eq!(exit(&below("a.db")), Ok(()));
        assert_eq!(exit("memory:"), Ok(()));
        assert_eq!(exit("postgres://rp@db.example.com/fleet"), Ok(()));
    }

    #[test]
    fn the_newest_key_seals_and_the_next_one_only_opens() {
        let folder = tempfile::tempdir().unwrap();
        let versions = || {
            let keys = sealing_keys(folder.path()).unwrap().into_iter();
            keys.map(|(version, _)| version).collect::<Vec<_>>()
        };
        assert_eq!(versions(), ["1"]);
        let first = sealing_keys(folder.path()).unwrap();
        assert_eq!(sealing_keys(folder.path()).unwrap(), first, "it is kept");
        let write = |name: &str, byte| {
            let text = STANDARD.encode([byte; 32]);
            private::write(&folder.path().join(name), &text).unwrap();
        };
        write("encryption-2.key.next", 2);
        assert_eq!(versions(), ["1", "2"]);
        write("encryption-2.key", 2);
        write("encryption-3.key.next", 3);
        assert_eq!(versions(), ["2", "1", "3"]);
        private::write(&folder.path().join("encryption-3.key"), "short").unwrap();
        assert!(sealing_keys(folder.path()).is_err());
    }
}
