//! Operator and resolver as processes of their own. The binary provides what only it may create: a client,
//! random numbers, and the signal to stop.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use neap_kit::{
    assembly::{self, Assembly, Identity, ProcessClients, RoleOptions},
    clock::Clock,
    manager::{self, Component, Health},
    watch::WatchesStopped,
    why::{Code, Coded},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    operator::{self, ListenAddress, OperatorOptions, certificate},
    resolver::{self, ResolverOptions, Sockets, net, workers::WorkerThreads},
};

/// The Lease of KubeElasti's leader election, so that an operator of KubeElasti and one of ours never lead
/// at the same time.
const LEASE: &str = "acf50383.truefoundry.io";
/// How long the components of an operator may take to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);
/// How much longer the shutdown of a resolver process may take than the drain of its connections.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(5);

/// Why a process could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use or does not exist.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The worker threads could not be started.
    #[error("cannot start the threads that carry connections")]
    WorkerThreads(#[source] io::Error),
    /// What every process has could not be set up, or a component ended.
    #[error(transparent)]
    Assembly(#[from] assembly::Error),
    /// The watches have stopped.
    #[error(transparent)]
    Watches(#[from] WatchesStopped),
    /// The certificate of the metrics server could not be created.
    #[error("cannot make a certificate for --metrics-secure")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } => Code("NT-IDLE-0004"),
            Self::WorkerThreads(_) | Self::Watches(_) => Code("NT-IDLE-0005"),
            Self::Certificate(_) => Code("NT-IDLE-0013"),
            Self::Assembly(assembly::Error::Election(_) | assembly::Error::Watches(_)) => {
                Code("NT-IDLE-0005")
            }
            Self::Assembly(error) => error.code(),
        }
    }
}

/// Runs an operator until `stop`.
pub async fn operator(
    clients: ProcessClients,
    options: OperatorOptions,
    identity: Identity,
    stop: CancellationToken,
) -> Result<(), Error> {
    let role = RoleOptions {
        elect: options.leader_elect,
        namespaces: options.namespaces.iter().cloned().collect(),
        listen: None,
        grace: SHUTDOWN_GRACE,
        ..RoleOptions::new(LEASE, &options.installation.operator_namespace)
    };
    let options = OperatorOptions {
        seed: identity.seed,
        ..options
    };
    let mut assembly = Assembly::new(clients, role, identity, Clock::system()).await?;
    let socket = bind(options.listen_host, options.installation.operator_port)?;
    let (components, _) = operator::components(assembly.context(), socket, &options)?;
    assembly.add(servers(&options, &assembly.health())?);
    assembly.add(components);
    Ok(assembly.run(stop).await?)
}

/// The health and metrics servers.
fn servers(options: &OperatorOptions, health: &Health) -> Result<Vec<Component>, Error> {
    if options.enable_http2 {
        tracing::warn!("--enable-http2 has no effect: metrics are served over HTTP/1.1");
    }
    let mut servers = Vec::new();
    let addresses = [
        ("health", options.health, false),
        ("metrics", options.metrics, options.metrics_secure),
    ];
    for (name, address, secure) in addresses {
        let Some(ListenAddress { host, port }) = address else {
            continue;
        };
        let socket = bind(host.or(options.listen_host), port)?;
        let health = health.clone();
        let mut server = if secure {
            let identity =
                certificate::self_signed(&options.installation).map_err(Error::Certificate)?;
            manager::secure_listener(socket, health, identity)
        } else {
            manager::listener(socket, health)
        };
        server.name = name;
        servers.push(server);
    }
    Ok(servers)
}

/// Runs a resolver until `stop`, and then until its connections are drained.
pub async fn resolver(
    clients: ProcessClients,
    options: ResolverOptions,
    identity: Identity,
    stop: CancellationToken,
) -> Result<(), Error> {
    if !options.ignored_variables.is_empty() {
        let variables = options.ignored_variables.join(", ");
        tracing::warn!(
            variables,
            "these variables are set and have no effect; docs/compatibility/idle.md has the reasons"
        );
    }
    let role = RoleOptions {
        elect: false,
        listen: None,
        grace: options.drain.total() + SHUTDOWN_MARGIN,
        ..RoleOptions::new(
            "neap-idle-resolver",
            &options.installation.resolver_namespace,
        )
    };
    let mut assembly = Assembly::new(clients, role, identity, Clock::system()).await?;
    let (host, installation) = (options.listen_host, &options.installation);
    let sockets = Sockets {
        internal: bind(host, installation.resolver_port)?,
        shared: bind(host, installation.resolver_proxy_port)?,
    };
    let worker_threads = WorkerThreads::for_all_cores().map_err(Error::WorkerThreads)?;
    let options = ResolverOptions {
        worker_threads,
        ..options
    };
    let (context, health) = (assembly.context(), assembly.health());
    let (components, _) = resolver::components(context, sockets, health, &options)?;
    assembly.add(components);
    Ok(assembly.run(stop).await?)
}

fn bind(host: Option<IpAddr>, port: u16) -> Result<TcpListener, Error> {
    net::bind(host, port).map_err(|source| {
        let host = host.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let address = SocketAddr::new(host, port);
        Error::Listen { address, source }
    })
}
