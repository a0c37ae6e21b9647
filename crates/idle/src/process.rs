//! Operator and resolver as processes of their own. The binary hands in what only it may have: a
//! client, chance, and the word to stop.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use kube::Client;
use neap_kit::{
    clock::Clock,
    lease::{self, Elector, Leadership, Timings},
    manager::{self, Manager, Service},
    process::Process,
    site::Site,
    watch::{Ended, WatchService, Watches},
    why::{Code, Coded},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    operator::{
        certificate,
        run::{self, Options},
        settings::{Listen, ResolverSettings, Settings},
    },
    resolver::{
        lanes::Threads,
        net,
        open::{self, Sockets},
    },
};

/// The Lease that operators of KubeElasti elect their leader by, so that an old one and a new one
/// never lead at once.
const LEASE: &str = "acf50383.truefoundry.io";
/// The end of a process takes so much longer than that of what is held.
const MARGIN: Duration = Duration::from_secs(5);

/// Why a process could not begin, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else has the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no thread to carry connections.
    #[error("cannot start threads that carry connections")]
    Threads(#[source] io::Error),
    /// Nobody can be elected so.
    #[error(transparent)]
    Election(#[from] lease::Error),
    /// It could not be put together.
    #[error(transparent)]
    Watches(#[from] Ended),
    /// It has nothing to show over TLS.
    #[error("cannot make a certificate for --metrics-secure")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A part of it ended.
    #[error(transparent)]
    Part(#[from] manager::Error),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } => Code("NT-IDLE-0004"),
            Self::Threads(_) | Self::Election(_) | Self::Watches(_) => Code("NT-IDLE-0005"),
            Self::Certificate(_) => Code("NT-IDLE-0013"),
            Self::Part(part) => part.code(),
        }
    }
}

/// What a process works with.
#[derive(Clone)]
pub struct Means {
    /// How it reaches the API.
    pub client: Client,
    /// What it tells of itself, the calls of `client` among it.
    pub process: Process,
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = &self.process;
        f.debug_struct("Means")
            .field("process", process)
            .finish_non_exhaustive()
    }
}

/// What sets a process apart from others of its kind.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Unlike every other, also unlike its own former lives.
    pub name: String,
    /// By chance.
    pub seed: u64,
}

/// An operator, until `stop`. `elect` is a client for the election, which does not try again by
/// itself; its calls are not among those of the rest, so that whoever looks at them sees whether
/// anything is done.
pub async fn operator(
    means: Means,
    elect: Client,
    settings: Settings,
    identity: Identity,
    stop: CancellationToken,
) -> Result<(), Error> {
    let clock = Clock::system();
    let Means { client, process } = means;
    let (watches, watching) = Watches::in_process(clock, process);
    let (elector, leadership) = if settings.flags.leader_elect {
        let options = lease::Options {
            namespace: settings.places.operator_namespace.clone(),
            name: LEASE.to_owned(),
            identity: identity.name,
            timings: Timings::default(),
        };
        let (elector, leadership) = Elector::new(elect, options, clock)?;
        let telemetry = watches.process().telemetry().clone();
        (Some(elector.counted_by(telemetry)), leadership)
    } else {
        (None, Leadership::alone(clock))
    };
    let site = Site {
        client,
        watches: watches.within(settings.namespaces.clone()),
        leadership,
        clock,
    };
    let mut manager = Manager::new(&site);
    let socket = bind(settings.whereabouts.host, settings.places.operator_port)?;
    let options = Options::of(&settings, identity.seed);
    let (services, _) = run::services(&site, socket, &options)?;
    for listener in listeners(&settings, &manager)? {
        manager.add(listener);
    }
    if let Some(elector) = elector {
        manager.add(elector);
    }
    until(manager, services, watching, stop).await
}

/// Where it is asked how it is, and for its numbers.
fn listeners(settings: &Settings, manager: &Manager) -> Result<Vec<Service>, Error> {
    let (flags, host) = (&settings.flags, settings.whereabouts.host);
    if flags.enable_http2 {
        tracing::warn!("--enable-http2 has no effect: numbers are shown over HTTP/1.1");
    }
    let mut listeners = Vec::new();
    let shown = [
        ("health", flags.health, false),
        ("metrics", flags.metrics, flags.metrics_secure),
    ];
    for (name, shown, secure) in shown {
        let Some(Listen { host: own, port }) = shown else {
            continue;
        };
        let (socket, health) = (bind(own.or(host), port)?, manager.health());
        let mut listener = if secure {
            let identity =
                certificate::self_signed(&settings.places).map_err(Error::Certificate)?;
            manager::secure_listener(socket, health, identity)
        } else {
            manager::listener(socket, health)
        };
        listener.name = name;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// A resolver, until `stop` and all that it holds has been seen to.
pub async fn resolver(
    means: Means,
    settings: ResolverSettings,
    stop: CancellationToken,
) -> Result<(), Error> {
    if !settings.unheeded.is_empty() {
        let variables = settings.unheeded.join(", ");
        tracing::warn!(
            variables,
            "these variables are set and have no effect; docs/compatibility.md says why"
        );
    }
    let clock = Clock::system();
    let Means { client, process } = means;
    let (watches, watching) = Watches::in_process(clock, process);
    let site = Site {
        client,
        watches,
        leadership: Leadership::alone(clock),
        clock,
    };
    let manager = Manager::new(&site).with_grace(settings.drain + MARGIN);
    let (host, places) = (settings.whereabouts.host, &settings.places);
    let sockets = Sockets {
        internal: bind(host, places.resolver_port)?,
        shared: bind(host, places.resolver_proxy_port)?,
    };
    let threads = Threads::for_all_cores().map_err(Error::Threads)?;
    let options = open::Options {
        threads,
        ..open::Options::of(&settings)
    };
    let (services, _) = open::services(&site, sockets, manager.health(), &options)?;
    until(manager, services, watching, stop).await
}

async fn until(
    mut manager: Manager,
    services: Vec<Service>,
    watching: WatchService,
    stop: CancellationToken,
) -> Result<(), Error> {
    for service in services {
        manager.add(service);
    }
    manager.add(watching);
    Ok(manager.run(stop).await?)
}

fn bind(host: Option<IpAddr>, port: u16) -> Result<TcpListener, Error> {
    net::bind(host, port).map_err(|source| {
        let host = host.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let address = SocketAddr::new(host, port);
        Error::Listen { address, source }
    })
}
