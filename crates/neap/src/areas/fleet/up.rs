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

use axum::Router;
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
    context::Context,
    http::{HttpLimits, TlsIdentity, server},
    manager::Component,
    telemetry::Telemetry,
    why::chain,
};
use neap_store::{Commit, Store};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Handle, sync::watch};

use super::{
    factory::{Authority, ClusterAddresses, PocketFactory},
    lazy_frontend::{self, Opened},
    provider::{Provider, ProviderOptions, check_store},
};
use crate::{
    areas::Host,
    cli::duration,
    environment,
    exit::{Exit, Failure},
};

/// The database in the folder of the area. It is made when the provider is first used.
const DATABASE: &str = "fleet.db";
/// The delay after a part could not start.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often conditions are polled: clusters in this process are there in a moment.
const CONDITION_POLL: Duration = Duration::from_millis(250);
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

    /// Simulated time until a new cluster's operators are available
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    fleet_settle: Duration,
}

/// Adds the address of the provider. Provider, Hive and factory start with the first request, or at once if an
/// earlier run has used them: clusters go on running.
pub(super) fn host(host: &mut Host<'_>, options: &FleetUpOptions) -> Result<(), Failure> {
    if options.without_fleet {
        return Ok(());
    }
    options.fleet_store.as_deref().map_or(Ok(()), check_store)?;
    let folder = host.folder()?;
    let address = host.address()?;
    let context = host.context().clone();
    let clock = context.clock;
    let authority =
        Authority::load_or_create(&folder).map_err(|error| failed(&error.to_string()))?;
    let tls = authority
        .server(address, None)
        .map_err(|error| failed(&error.to_string()))?;
    let socket = bind(address)?;
    let url = format!("https://{address}:{PORT}");
    let was_used = options.fleet_store.is_some() || folder.join(DATABASE).exists();
    let addresses = ClusterAddresses {
        own: host.late_addresses(),
        shared: address,
    };
    let start = Start {
        context: context.clone(),
        store: options.fleet_store.clone(),
        folder,
        settle: options.fleet_settle,
    };
    let (opening, opened) = watch::channel(Opened::NotYet);
    let first_use = host.when_used(move || start.components(addresses, opening));
    if was_used {
        first_use.mark();
    }
    let routes = lazy_frontend::router(first_use, opened, clock);
    let (identity, limits) = (TlsIdentity::fixed(tls), HttpLimits::default());
    let name = "fleet-frontend";
    let frontend = server(name, socket, Some(identity), routes, limits, clock);
    host.add([
        frontend,
        publisher(context, url.clone(), authority.certificate),
    ]);
    host.announce("fleet", format!("{url}  (neap fleet create NAME)"));
    Ok(())
}

/// Tells the command where the provider is.
fn publisher(context: Context, url: String, authority: String) -> Component {
    Component::new("fleet-address", move |stop| async move {
        while let Err(failure) = publish(&context, &url, &authority).await {
            tracing::warn!(why = %failure, "the address of the provider was not published");
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(RETRY_DELAY) => {}
            }
        }
        stop.cancelled().await;
    })
}

/// The database in the folder of the area, which only its owner may read. SQLite creates its other files
/// with the permissions of this one.
fn own_store(folder: &Path) -> io::Result<String> {
    let path = folder.join(DATABASE);
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
    store: Option<String>,
    folder: PathBuf,
    settle: Duration,
}

impl Start {
    /// Hive with its clusters, and the provider.
    fn components(
        self,
        addresses: ClusterAddresses,
        opening: watch::Sender<Opened>,
    ) -> Result<Vec<Component>, Failure> {
        let (environment, panics) = environment::system(&Handle::current());
        let clusters = self.folder.join("clusters");
        let factory = Arc::new(PocketFactory::new(clusters, addresses, environment));
        let options = HiveOptions {
            settle: self.settle,
            ..HiveOptions::default()
        };
        let sync = hive::sync_component(&self.context, "fleet-hive-sync", factory.clone());
        let sync = sync.map_err(|error| failed(&error.to_string()))?;
        let hive = hive::component(&self.context, "fleet-hive", factory, options);
        let hive = hive.map_err(|error| failed(&error.to_string()))?;
        let provider = Component::new("fleet-provider", move |stop| async move {
            // Held as long as the clusters run: a panic of one of them is logged where it happens.
            let _panics = panics;
            tokio::select! {
                () = stop.cancelled() => {}
                parts = self.open_until_it_works(&opening) => {
                    let running = parts.into_iter().map(|it| it.run(stop.child_token()));
                    join_all(running).await;
                }
            }
        });
        Ok(vec![hive, sync, provider])
    }

    async fn open_until_it_works(&self, opening: &watch::Sender<Opened>) -> Vec<Component> {
        loop {
            match self.open().await {
                Ok((components, router)) => {
                    opening.send_replace(Opened::Ready(router));
                    return components;
                }
                Err(failure) => {
                    tracing::error!(why = %failure, "the provider of clusters did not start");
                    opening.send_replace(Opened::Failed(failure.to_string()));
                }
            }
            self.context.clock.sleep(RETRY_DELAY).await;
        }
    }

    async fn open(&self) -> Result<(Vec<Component>, Router), Failure> {
        self.install_definitions().await?;
        let telemetry: Telemetry = self.context.watches.process().telemetry().clone();
        let clock = self.context.clock;
        let store = match self.store.clone() {
            Some(store) => store,
            None => own_store(&self.folder).map_err(|error| failed(&error.to_string()))?,
        };
        let options = ProviderOptions {
            store,
            folder: self.folder.clone(),
            location: LOCATION.to_owned(),
            domain: DOMAIN.to_owned(),
            enrich: true,
            authorizer: Authorizer::Development,
            readiness_delay: Duration::ZERO,
            condition_poll: Some(CONDITION_POLL),
        };
        let provider = Provider::open(options, telemetry, clock).await?;
        prepare(&provider.store).await?;
        provider.read_versions().await?;
        let mut components = vec![provider.catalogue()];
        let hive = Some(self.context.client.clone());
        components.extend(provider.backend(hive.clone()));
        Ok((components, provider.router(hive)?))
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
}

async fn publish(context: &Context, url: &str, authority: &str) -> Result<(), Failure> {
    let (namespace, name) = PUBLISHED;
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"namespace": namespace, "name": name},
        "data": {
            "url": url,
            "ca.crt": authority,
            "subscription": SUBSCRIPTION,
            "location": LOCATION,
        },
    }))
    .map_err(|error| failed(&error.to_string()))?;
    let writer = context.writer("neap-fleet");
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

/// A subscription and versions, as a fresh provider has them. Nothing if the subscription exists.
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
    // In one transaction with the subscription: a version that was removed later does not come back.
    let commit = documents
        .into_iter()
        .fold(Commit::default(), |commit, (key, body)| {
            commit.create(key, body)
        });
    match store.commit(commit).await {
        Ok(_) | Err(neap_store::Error::Exists(_)) => Ok(()),
        Err(error) => Err(failed(&chain(&error))),
    }
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
