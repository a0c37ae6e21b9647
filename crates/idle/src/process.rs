//! Operator and resolver as processes of their own. The binary provides what only it may create: a client,
//! random numbers, and the signal to stop.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use kube::Client;
use neap_kit::{
    clock::Clock,
    context::Context,
    lease::{self, Elector, Leadership, LeaseTimings},
    manager::{self, Component, Manager},
    process::Process,
    watch::{WatchRunner, Watches, WatchesStopped},
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
    /// The options of the leader election are invalid.
    #[error(transparent)]
    Election(#[from] lease::Error),
    /// The watches have stopped.
    #[error(transparent)]
    Watches(#[from] WatchesStopped),
    /// The certificate of the metrics server could not be created.
    #[error("cannot make a certificate for --metrics-secure")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A component ended.
    #[error(transparent)]
    Component(#[from] manager::Error),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } => Code("NT-IDLE-0004"),
            Self::WorkerThreads(_) | Self::Election(_) | Self::Watches(_) => Code("NT-IDLE-0005"),
            Self::Certificate(_) => Code("NT-IDLE-0013"),
            Self::Component(component) => component.code(),
        }
    }
}

/// The client of a process, and the process whose telemetry counts its calls.
#[derive(Clone)]
pub struct ProcessClient {
    /// The client of the API server.
    pub client: Client,
    /// The metrics and the debug state of the process.
    pub process: Process,
}

impl fmt::Debug for ProcessClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = &self.process;
        f.debug_struct("ProcessClient")
            .field("process", process)
            .finish_non_exhaustive()
    }
}

/// What distinguishes a process from others of its role.
#[derive(Debug, Clone)]
pub struct Identity {
    /// A unique name, different also from that of its predecessors in the same pod.
    pub name: String,
    /// A random number.
    pub seed: u64,
}

/// Runs an operator until `stop`. `election_client` is the client of the leader election, which does not
/// retry by itself; its calls are not counted with the others, so that those show whether the operator does
/// anything.
pub async fn operator(
    client: ProcessClient,
    election_client: Client,
    options: OperatorOptions,
    identity: Identity,
    stop: CancellationToken,
) -> Result<(), Error> {
    let clock = Clock::system();
    let ProcessClient { client, process } = client;
    let (watches, runner) = Watches::in_process(clock, process);
    let (elector, leadership) = if options.leader_elect {
        let election = lease::ElectionOptions {
            namespace: options.installation.operator_namespace.clone(),
            name: LEASE.to_owned(),
            identity: identity.name,
            timings: LeaseTimings::default(),
        };
        let (elector, leadership) = Elector::new(election_client, election, clock)?;
        let telemetry = watches.process().telemetry().clone();
        (Some(elector.with_telemetry(telemetry)), leadership)
    } else {
        (None, Leadership::without_election(clock))
    };
    let context = Context {
        client,
        watches: watches.in_namespaces(options.namespaces.clone()),
        leadership,
        clock,
    };
    let options = OperatorOptions {
        seed: identity.seed,
        ..options
    };
    let mut manager = Manager::new(&context);
    let socket = bind(options.listen_host, options.installation.operator_port)?;
    let (components, _) = operator::components(&context, socket, &options)?;
    for server in servers(&options, &manager)? {
        manager.add(server);
    }
    if let Some(elector) = elector {
        manager.add(elector);
    }
    run(manager, components, runner, stop).await
}

/// The health and metrics servers.
fn servers(options: &OperatorOptions, manager: &Manager) -> Result<Vec<Component>, Error> {
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
        let health = manager.health();
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
    client: ProcessClient,
    options: ResolverOptions,
    stop: CancellationToken,
) -> Result<(), Error> {
    if !options.ignored_variables.is_empty() {
        let variables = options.ignored_variables.join(", ");
        tracing::warn!(
            variables,
            "these variables are set and have no effect; docs/compatibility/idle.md has the reasons"
        );
    }
    let clock = Clock::system();
    let ProcessClient { client, process } = client;
    let (watches, runner) = Watches::in_process(clock, process);
    let context = Context {
        client,
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    let manager = Manager::new(&context).with_grace(options.drain.total() + SHUTDOWN_MARGIN);
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
    let (components, _) = resolver::components(&context, sockets, manager.health(), &options)?;
    run(manager, components, runner, stop).await
}

async fn run(
    mut manager: Manager,
    components: Vec<Component>,
    runner: WatchRunner,
    stop: CancellationToken,
) -> Result<(), Error> {
    for component in components {
        manager.add(component);
    }
    manager.add(runner);
    Ok(manager.run(stop).await?)
}

fn bind(host: Option<IpAddr>, port: u16) -> Result<TcpListener, Error> {
    net::bind(host, port).map_err(|source| {
        let host = host.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let address = SocketAddr::new(host, port);
        Error::Listen { address, source }
    })
}
