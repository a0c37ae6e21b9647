//! The operator: the controller of farms, in a process of its own or in `neap up`.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use kube::Client;
use neap_kit::{
    clock::Clock,
    context::Context,
    lease::{self, Elector, Leadership, LeaseTimings},
    manager::{self, Component, Manager},
    process::Process,
    watch::{Watches, WatchesStopped},
    why::{Code, Coded},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    farm::controller::{self, Settings},
    jsonnet::EvaluatorProcess,
    queue::GrpcBuildQueue,
};

/// The Lease of the original's leader election, so that the two never lead at the same time.
pub const LEASE: &str = "buildbarn-operator.buildbarn.io";

/// The options of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorOptions {
    /// Where `/metrics` is; nowhere if absent.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are; nowhere if absent.
    pub health: Option<SocketAddr>,
    /// Whether a leader is elected among several operators.
    pub leader_elect: bool,
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespaces of farms; all if empty.
    pub watched: Vec<String>,
    /// The program that evaluates Jsonnet: this one.
    pub program: PathBuf,
    /// A unique name for the election.
    pub identity: String,
}

/// Why the operator could not start or continue.
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
    /// The options of the leader election are invalid.
    #[error(transparent)]
    Election(#[from] lease::Error),
    /// The watches have stopped.
    #[error(transparent)]
    Watches(#[from] WatchesStopped),
    /// A component ended.
    #[error(transparent)]
    Component(#[from] manager::Error),
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } => Code("NT-FARM-0002"),
            Self::Election(_) | Self::Watches(_) => Code("NT-FARM-0001"),
            Self::Component(component) => component.code(),
        }
    }
}

/// An address such as `:8080` or `127.0.0.1:8080`; none for `0`.
pub fn bind_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "0" {
        return Ok(None);
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port
            .parse()
            .ok()
            .map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        None => text.parse().ok(),
    };
    let address = parsed.ok_or_else(|| format!("{text:?} is no address such as :8080"))?;
    Ok(Some(address))
}

/// The controller of farms, which evaluates Jsonnet with `program` and is in `namespace`.
pub fn components(
    context: &Context,
    program: PathBuf,
    namespace: &str,
) -> Result<Vec<Component>, WatchesStopped> {
    let settings = Settings {
        evaluator: Arc::new(EvaluatorProcess::new(program, context.clock)),
        queue: Arc::new(GrpcBuildQueue::new(context.clock)),
        operator_namespace: namespace.to_owned(),
    };
    Ok(vec![controller::component(context, settings)?])
}

/// Runs an operator until `stop`. `election_client` is the client of the leader election, which does not
/// retry by itself.
pub async fn run(
    client: Client,
    process: Process,
    election_client: Client,
    options: OperatorOptions,
    stop: CancellationToken,
) -> Result<(), Error> {
    let clock = Clock::system();
    let (watches, runner) = Watches::in_process(clock, process);
    let (elector, leadership) = if options.leader_elect {
        let election = lease::ElectionOptions {
            namespace: options.namespace.clone(),
            name: LEASE.to_owned(),
            identity: options.identity.clone(),
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
        watches: watches.in_namespaces(options.watched.clone()),
        leadership,
        clock,
    };
    let mut manager = Manager::new(&context);
    for component in components(&context, options.program.clone(), &options.namespace)? {
        manager.add(component);
    }
    for (name, address) in [("health", options.health), ("metrics", options.metrics)] {
        let Some(address) = address else {
            continue;
        };
        let mut server = manager::listener(listen(address)?, manager.health());
        server.name = name;
        manager.add(server);
    }
    if let Some(elector) = elector {
        manager.add(elector);
    }
    manager.add(runner);
    Ok(manager.run(stop).await?)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let open = || {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket)
    };
    open().map_err(|source| Error::Listen { address, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_original() {
        let all = |port| Ok(Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))));
        assert_eq!(bind_address(":8080"), all(8080));
        assert_eq!(bind_address("0"), Ok(None));
        assert_eq!(
            bind_address("127.0.0.1:8081"),
            Ok(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8081))))
        );
        for text in ["", "8080", ":x", ":70000", "host:1"] {
            assert!(bind_address(text).is_err(), "{text}");
        }
    }
}
