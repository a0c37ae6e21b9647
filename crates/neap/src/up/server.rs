//! The API server as `neap up` sees it: opened, then served until told to stop.
//!
//! The only file of this crate that knows how the server is made.

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

use crate::exit::{Exit, Failure, chain};

/// What a server is made of beside its surroundings.
pub(super) struct Plan {
    /// The folder of the store; in memory if there is none.
    pub(super) store: Option<PathBuf>,
    /// Decides who sent a request.
    pub(super) authenticator: Arc<dyn Authenticate>,
    /// Whether one who shows nothing is let in, as nobody in particular.
    pub(super) anonymous: bool,
    /// Signs tokens of service accounts.
    pub(super) signing_key: SigningKey,
    /// The certificate authority that namespaces are told of, in PEM.
    pub(super) root_ca: String,
    /// Where the server listens.
    pub(super) port: u16,
    /// Where clients find it.
    pub(super) advertised: String,
    /// Where services get their addresses: the first, and how long the prefix is.
    pub(super) service_range: (Ipv4Addr, u8),
    /// Runs pods, if anything does.
    pub(super) runtime: Option<Arc<dyn PodRuntime>>,
}

/// The server.
pub(super) struct Server {
    pocket: Pocket,
    authenticator: Arc<dyn Authenticate>,
    anonymous: bool,
}

impl Server {
    /// Opens the store and makes what every cluster has.
    pub(super) async fn open(environment: Environment, plan: Plan) -> Result<Self, Failure> {
        let storage = match plan.store {
            Some(folder) => Storage::Folder(folder),
            // A store in memory begins anew, but clients compare revisions across restarts: one
            // that grows with time never goes back.
            None => Storage::Memory(environment.clock.now().as_millisecond().unsigned_abs()),
        };
        let options = Options {
            storage,
            root_ca: Some(plan.root_ca),
            signing_key: Some(plan.signing_key),
            port: plan.port,
            advertised: Some(plan.advertised),
            runtime: plan.runtime,
            settings: Settings {
                // Pods are local processes here, so their addresses are loopback ones.
                loopback_endpoints: true,
                service_range: plan.service_range,
                ..Settings::default()
            },
            ..Options::new(environment)
        };
        let pocket = Pocket::open(options)
            .await
            .map_err(|error| refusal(&error))?;
        Ok(Self {
            pocket,
            authenticator: plan.authenticator,
            anonymous: plan.anonymous,
        })
    }

    /// A client that needs no socket and may do everything.
    pub(super) fn client(&self) -> Client {
        Client::new(self.pocket.service(), "default")
    }

    /// Answers requests until `stop` resolves and those under way have ended.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let service = self.pocket.service().authenticated_by(self.authenticator);
        let service = service.with_anonymous(self.anonymous);
        let served = wire::serve(listener, tls, service, stop).await;
        // The last sync may take its time; waiting for it must not keep a second signal from being
        // heard.
        let pocket = self.pocket;
        if let Err(error) = tokio::task::spawn_blocking(move || pocket.close()).await {
            tracing::error!(%error, "the store was not closed in order");
        }
        served
    }
}

fn refusal(error: &Error) -> Failure {
    Failure::new(
        "NT-UP-0014",
        Exit::Refused,
        "the store cannot be opened",
        &chain(error),
    )
    .remedy("follow the advice above, or start with another --data folder")
}
