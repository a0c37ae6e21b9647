//! Clusters in `neap up`: the provider, a Hive, and a factory of clusters in this process.

use std::{
    fs::File,
    io,
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use neap_emulators::hive::{self, HiveOptions};
use neap_fleet::{
    documents::{SUBSCRIPTIONS, VERSIONS, region_document, subscription_document},
    http::Authorizer,
};
use neap_kit::{
    context::Context, http::TlsIdentity, manager::Component, telemetry::Telemetry, why::chain,
};
use neap_store::{Commit, Store};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Handle};

use super::{
    factory::{Authority, PocketFactory},
    provider::{Provider, ProviderOptions},
};
use crate::{
    areas::Host,
    cli::duration,
    environment,
    exit::{Exit, Failure},
};

/// The port of the provider.
const PORT: u16 = 8443;
/// Where the command finds the provider: a ConfigMap that every client may read.
pub(super) const PUBLISHED: (&str, &str) = ("default", "neap-fleet");
/// The subscription that is registered from the start.
pub(super) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
/// The location of the provider.
pub(super) const LOCATION: &str = "local";
const DOMAIN: &str = "local.aroapp.example.com";
/// The versions that can be installed from the start; the first is the default.
const INSTALLED_VERSIONS: [&str; 2] = ["4.19.9", "4.18.21"];

/// Flags of `neap up` for clusters.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct FleetUpOptions {
    /// Do not run the provider of clusters
    #[arg(long, conflicts_with = "bare")]
    without_fleet: bool,

    /// Store of the provider: sqlite:FILE or postgres://…; by default a file in the data folder
    #[arg(long, value_name = "ADDRESS", env = "NEAP_FLEET_STORE")]
    fleet_store: Option<String>,

    /// Time until the parts of a new cluster have settled
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    fleet_settle: Duration,
}

/// Adds provider, Hive and factory.
pub(super) fn host(host: &mut Host<'_>, options: &FleetUpOptions) -> Result<(), Failure> {
    if options.without_fleet {
        return Ok(());
    }
    let folder = host.folder()?;
    let address = host.address()?;
    let context = host.context();
    let (environment, panics) = environment::system(&Handle::current());
    let clusters = folder.join("clusters");
    let factory = Arc::new(PocketFactory::new(clusters, address, environment));
    let hive_options = HiveOptions {
        settle: options.fleet_settle,
        ..HiveOptions::default()
    };
    let hive = hive::component(context, "fleet-hive", factory, hive_options);
    let hive = hive.map_err(|error| failed(&error.to_string()))?;
    let authority =
        Authority::load_or_create(&folder).map_err(|error| failed(&error.to_string()))?;
    let tls = authority
        .server(address, None)
        .map_err(|error| failed(&error.to_string()))?;
    let socket = bind(address)?;
    let url = format!("https://{address}:{PORT}");
    let store = match options.fleet_store.clone() {
        Some(store) => store,
        None => own_store(&folder).map_err(|error| failed(&error.to_string()))?,
    };
    let start = Start {
        context: context.clone(),
        store,
        folder,
        url: url.clone(),
        authority: authority.certificate,
    };
    let provider = Component::new("fleet-provider", move |stop| async move {
        // Held as long as the clusters run: a panic of one of them is logged where it happens.
        let _panics = panics;
        match start.components(socket, TlsIdentity::fixed(tls)).await {
            Ok(components) => {
                let running = components.into_iter().map(|it| it.run(stop.child_token()));
                join_all(running).await;
            }
            Err(failure) => {
                tracing::error!(why = %failure, "the provider of clusters did not start");
            }
        }
    });
    host.add([hive, provider]);
    host.announce("fleet", format!("{url}  (neap fleet create NAME)"));
    Ok(())
}

/// The database in the folder of the area, which only its owner may read. SQLite creates its other files
/// with the permissions of this one.
fn own_store(folder: &Path) -> io::Result<String> {
    let path = folder.join("fleet.db");
    let mut options = File::options();
    options.create(true).append(true).mode(0o600).open(&path)?;
    Ok(format!("sqlite:{}", path.display()))
}

fn failed(why: &str) -> Failure {
    let what = "the provider of clusters cannot be set up";
    Failure::new("NT-FLEET-0011", Exit::Failed, what, why)
        .remedy("start it again; with -vv the log says more, or run without it: --without-fleet")
}

fn bind(address: IpAddr) -> Result<TcpListener, Failure> {
    let bound = std::net::TcpListener::bind((address, PORT)).and_then(|socket| {
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket)
    });
    bound.map_err(|error| failed(&format!("{address}:{PORT}: {error}")))
}

/// What the provider starts with.
struct Start {
    context: Context,
    store: String,
    folder: PathBuf,
    url: String,
    authority: String,
}

impl Start {
    async fn components(
        self,
        socket: TcpListener,
        identity: TlsIdentity,
    ) -> Result<Vec<Component>, Failure> {
        self.install_definitions().await?;
        let telemetry: Telemetry = self.context.watches.process().telemetry().clone();
        let clock = self.context.clock;
        let options = ProviderOptions {
            store: self.store.clone(),
            folder: self.folder.clone(),
            location: LOCATION.to_owned(),
            domain: DOMAIN.to_owned(),
            frontend: true,
            backend: true,
            enrich: true,
            authorizer: Authorizer::Development,
            readiness_delay: Duration::ZERO,
        };
        let provider = Provider::open(options, telemetry, clock).await?;
        prepare(&provider.store).await?;
        self.publish().await?;
        let client = self.context.client.clone();
        provider.components(Some(client), Some((socket, identity)))
    }

    async fn install_definitions(&self) -> Result<(), Failure> {
        let writer = self.context.writer("neap-fleet");
        for definition in hive::definitions() {
            let created: Result<Option<CustomResourceDefinition>, _> =
                writer.create(&definition).await;
            created.map_err(|error| failed(&chain(&error)))?;
        }
        Ok(())
    }

    /// Tells the command where the provider is.
    async fn publish(&self) -> Result<(), Failure> {
        let (namespace, name) = PUBLISHED;
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name},
            "data": {
                "url": self.url,
                "ca.crt": self.authority,
                "subscription": SUBSCRIPTION,
                "location": LOCATION,
            },
        }))
        .map_err(|error| failed(&error.to_string()))?;
        let writer = self.context.writer("neap-fleet");
        let key = neap_kit::key::Key::new(namespace, name);
        let found: Option<ConfigMap> = writer
            .find(&key)
            .await
            .map_err(|error| failed(&chain(&error)))?;
        let done = match found {
            None => writer.create(&map).await.map(drop),
            Some(found) if found.data == map.data => Ok(()),
            Some(mut found) => {
                found.data = map.data;
                writer.replace(&found).await.map(drop)
            }
        };
        done.map_err(|error| failed(&chain(&error)))
    }
}

/// A subscription and versions, as a fresh provider has them.
async fn prepare(store: &Store) -> Result<(), Failure> {
    let subscription = json!({
        "id": SUBSCRIPTION,
        "subscription": {
            "state": "Registered",
            "properties": {"tenantId": "00000000-0000-0000-0000-0000000000aa"},
        },
    });
    let mut documents = vec![(
        subscription_document(SUBSCRIPTIONS, SUBSCRIPTION, SUBSCRIPTION),
        subscription,
    )];
    for (at, version) in INSTALLED_VERSIONS.iter().enumerate() {
        documents.push((
            region_document(VERSIONS, version),
            version_document(version, at == 0),
        ));
    }
    for (key, body) in documents {
        match store.commit(Commit::default().create(key, body)).await {
            Ok(_) | Err(neap_store::Error::Exists(_)) => {}
            Err(error) => return Err(failed(&chain(&error))),
        }
    }
    Ok(())
}

fn version_document(version: &str, default: bool) -> Value {
    json!({
        "id": version,
        "openShiftVersion": {"properties": {
            "version": version,
            "openShiftPullspec": format!("registry.example.com/openshift/release:{version}"),
            "installerPullspec": format!("registry.example.com/openshift/installer:{version}"),
            "enabled": true,
            "default": default,
        }},
    })
}
