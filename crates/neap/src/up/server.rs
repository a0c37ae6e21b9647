//! Opens and serves the API server.
//!
//! The only module of this crate that constructs `Pocket`.

use std::{future::Future, io, net::Ipv4Addr, path::PathBuf, sync::Arc};

use kube::Client;
use neap_pocket::{
    Error, Options, Pocket, Storage,
    environment::Environment,
    identity::{Authenticate, SigningKey},
    kinds::Settings,
    runtime::PodRuntime,
    wire,
};
use rustls::ServerConfig;
use tokio::net::TcpListener;

use super::limits::ConnectionLimits;
use crate::exit::{Exit, Failure, chain};

/// The configuration of the server.
pub(super) struct ServerOptions {
    /// The folder of the store; `None` keeps it in memory.
    pub(super) store: Option<PathBuf>,
    /// Authenticates requests.
    pub(super) authenticator: Arc<dyn Authenticate>,
    /// Whether requests without credentials are accepted as system:anonymous.
    pub(super) anonymous: bool,
    /// Signs tokens of service accounts.
    pub(super) signing_key: SigningKey,
    /// The certificate authority that is published in every namespace, PEM.
    pub(super) root_ca: String,
    /// The port that the server listens on.
    pub(super) port: u16,
    /// Host and port for clients.
    pub(super) advertised: String,
    /// The network of the cluster IPs: first address and prefix length.
    pub(super) service_range: (Ipv4Addr, u8),
    /// Access to the containers of the node, if there is one.
    pub(super) runtime: Option<Arc<dyn PodRuntime>>,
}

/// An open API server.
pub(super) struct Server {
    pocket: Pocket,
    authenticator: Arc<dyn Authenticate>,
    anonymous: bool,
}

impl Server {
    /// Opens the store and creates the objects that every cluster has.
    pub(super) async fn open(
        environment: Environment,
        config: ServerOptions,
    ) -> Result<Self, Failure> {
        let storage = match config.store {
            Some(folder) => Storage::Folder(folder),
            // A store in memory starts empty, but clients compare resource versions across restarts; a
            // first revision derived from the time never decreases.
            None => Storage::Memory(environment.clock.now().as_millisecond().unsigned_abs()),
        };
        let options = Options {
            storage,
            root_ca: Some(config.root_ca),
            signing_key: Some(config.signing_key),
            port: config.port,
            advertised: Some(config.advertised),
            runtime: config.runtime,
            settings: Settings {
                // Pods are local processes, so their addresses are loopback addresses.
                loopback_endpoints: true,
                service_range: config.service_range,
                ..Settings::default()
            },
            ..Options::new(environment)
        };
        let pocket = Pocket::open(options)
            .await
            .map_err(|error| refusal(&error))?;
        Ok(Self {
            pocket,
            authenticator: config.authenticator,
            anonymous: config.anonymous,
        })
    }

    /// An in-process client that bypasses authentication and authorization.
    pub(super) fn client(&self) -> Client {
        Client::new(self.pocket.service(), "default")
    }

    /// Serves requests until `stop` resolves and the requests in flight have ended.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let service = self.pocket.service().authenticated_by(self.authenticator);
        let service = service
            .with_anonymous(self.anonymous)
            .with_max_connections(ConnectionLimits::of_process().api);
        let served = wire::serve(listener, tls, service, stop).await;
        // The last sync may be slow; it must not block the handling of a second signal.
        let pocket = self.pocket;
        if let Err(error) = tokio::task::spawn_blocking(move || pocket.close()).await {
            tracing::error!(%error, "the store was not closed cleanly");
        }
        served
    }
}

fn refusal(error: &Error) -> Failure {
    Failure::new(
        "NT-UP-0014",
        Exit::Refused,
        "cannot open the store",
        &chain(error),
    )
    .remedy("follow the advice above, or use another --data folder")
}
