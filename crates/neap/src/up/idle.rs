//! Services that sleep, in `neap up`: an operator and a resolver in this process. As in a cluster, they call each
//! other over sockets and authenticate with tokens.

mod installed_objects;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderName;
use neap_idle::{
    elasti_service::facts::Timeouts,
    operator::OperatorOptions,
    options::Installation,
    resolver::{ResolverOptions, Sockets, drain::DrainTimeouts, http::HostRouting, net},
};
use neap_kit::{
    context::Context,
    manager::{Component, Health},
};
use neap_world::node::address::Block;
use tokio::net::TcpListener;

use crate::exit::{Exit, Failure};

/// The names of the installation, as in the manifests of deploy/idle.
const NAMESPACE: &str = "elasti";
const RESOLVER: &str = "elasti-resolver";
const RESOLVER_SERVICE: &str = "elasti-resolver-service";
const OPERATOR: &str = "elasti-operator-controller-manager";
const OPERATOR_SERVICE: &str = "elasti-operator-controller-service";
const INTERNAL: u16 = 8013;
const SHARED: u16 = 8012;
/// The header that names a service on the shared port, as in the chart.
const HEADER: HeaderName = HeaderName::from_static("x-envoy-decorator-operation");

/// The time between two polls of triggers. There is one resolver in the same process, so a poll is cheap.
const POLLING_INTERVAL: Duration = Duration::from_secs(5);
/// Pods here have four seconds to end, so held requests have less.
const DRAIN: DrainTimeouts = DrainTimeouts {
    data_plane_lag: Duration::ZERO,
    held_requests: Duration::from_secs(1),
    in_flight: Duration::from_secs(1),
};

/// The components of both, with their tokens in `folder`, and the one that maintains their objects.
pub(super) fn components(
    context: &Context,
    block: Block,
    folder: &Path,
    health: Health,
) -> Result<Vec<Component>, Failure> {
    let (resolver_host, operator_host) = hosts(block);
    let objects = installed_objects::InstalledObjects {
        resolver: resolver_host,
        tokens: folder.to_owned(),
    };
    let sockets = Sockets {
        internal: bind(resolver_host, INTERNAL)?,
        shared: bind(resolver_host, SHARED)?,
    };
    let operator_socket = bind(operator_host, INTERNAL)?;
    let resolver = resolver(resolver_host, operator_host, token(folder, RESOLVER));
    let operator = operator(token(folder, OPERATOR));
    let operator = (operator_socket, &operator);
    let components = neap_idle::components(context, health, operator, (sockets, &resolver));
    let mut components = components.map_err(setup_failed)?;
    components.push(objects.component(context));
    Ok(components)
}

/// Two addresses of the block that no pod gets: those after the node's.
fn hosts(block: Block) -> (IpAddr, IpAddr) {
    let node = u32::from(block.node());
    let after = |count| IpAddr::V4(Ipv4Addr::from(node + count));
    (after(1), after(2))
}

fn token(folder: &Path, account: &str) -> PathBuf {
    folder.join(format!("{account}.token"))
}

fn installation() -> Installation {
    Installation {
        resolver_namespace: NAMESPACE.to_owned(),
        resolver_deployment: RESOLVER.to_owned(),
        resolver_service: RESOLVER_SERVICE.to_owned(),
        resolver_account: RESOLVER.to_owned(),
        resolver_port: INTERNAL,
        resolver_proxy_port: SHARED,
        operator_namespace: NAMESPACE.to_owned(),
        operator_deployment: OPERATOR.to_owned(),
        operator_service: OPERATOR_SERVICE.to_owned(),
        operator_account: OPERATOR.to_owned(),
        operator_port: INTERNAL,
    }
}

fn operator(token: PathBuf) -> OperatorOptions {
    OperatorOptions {
        polling_interval: POLLING_INTERVAL,
        // The data plane is one process, so a proof covers all of it.
        timeouts: Timeouts {
            grace: Duration::from_secs(1),
            ..Timeouts::default()
        },
        token_file: Some(token),
        ..OperatorOptions::new(installation())
    }
}

fn resolver(host: IpAddr, operator: IpAddr, token: PathBuf) -> ResolverOptions {
    let operator_address = SocketAddr::new(operator, INTERNAL).to_string();
    ResolverOptions {
        listen_host: Some(host),
        host_routing: HostRouting {
            header: Some(HEADER),
            ..HostRouting::default()
        },
        drain: DRAIN,
        token_file: Some(token),
        ..ResolverOptions::new(installation(), operator_address)
    }
}

fn bind(host: IpAddr, port: u16) -> Result<TcpListener, Failure> {
    net::bind(Some(host), port).map_err(|error| {
        let what = format!("cannot listen on {}", SocketAddr::new(host, port));
        Failure::new("NT-IDLE-0004", Exit::Refused, &what, &error.to_string())
            .remedy("end the program that listens on port 8012 or 8013 at all addresses, or run the API alone: neap up --bare")
    })
}

fn setup_failed(error: neap_kit::watch::WatchesStopped) -> Failure {
    let what = "operator and resolver of sleeping services cannot be set up";
    Failure::new("NT-IDLE-0005", Exit::Failed, what, &error.to_string())
        .remedy("start it again; with -vv the log says more")
}
