//! Services that sleep, in `neap up`: an operator and a resolver in this process. As in a cluster, they call each
//! other over sockets and authenticate with tokens.

mod installed_objects;

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use http::HeaderName;
use neap_idle::{
    elasti_service::facts::Timeouts,
    operator::OperatorOptions,
    options::Installation,
    resolver::{
        ResolverOptions, Sockets, drain::DrainTimeouts, http::HostRouting, net,
        routes::RouteDefaults,
    },
};
use tokio::net::TcpListener;

use crate::{
    areas::Host,
    exit::{Exit, Failure},
};

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
/// How long a request is held and a start may take, unless the ElastiService says otherwise. Processes start within
/// seconds here, and a developer waits for the answer.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Pods here have four seconds to end, so held requests have less.
const DRAIN: DrainTimeouts = DrainTimeouts {
    data_plane_lag: Duration::ZERO,
    held_requests: Duration::from_secs(1),
    in_flight: Duration::from_secs(1),
};

/// Flags of `neap up` for services that sleep.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct IdleUpOptions {
    /// Do not run the idle operator and resolver, for example to install deploy/idle instead
    #[arg(long, conflicts_with = "bare")]
    without_idle: bool,
}

/// Adds operator and resolver, with their tokens in a folder, and the component that maintains their objects.
///
/// They start at once and not with the first ElastiService: annotations of any Service or workload may ask for
/// sleep, and the watches of those kinds run for the cluster's own controllers anyway.
pub(super) fn host(host: &mut Host<'_>, options: &IdleUpOptions) -> Result<(), Failure> {
    if options.without_idle {
        return Ok(());
    }
    let (context, folder) = (host.context(), host.folder()?);
    let (resolver_host, operator_host) = (host.address()?, host.address()?);
    let objects = installed_objects::InstalledObjects {
        resolver: resolver_host,
        tokens: folder.clone(),
    };
    let sockets = Sockets {
        internal: bind(resolver_host, INTERNAL)?,
        shared: bind(resolver_host, SHARED)?,
    };
    let operator_socket = bind(operator_host, INTERNAL)?;
    let resolver = resolver(resolver_host, operator_host, token(&folder, RESOLVER));
    let operator = operator(token(&folder, OPERATOR));
    let operator = (operator_socket, &operator);
    let components = neap_idle::components(context, host.health(), operator, (sockets, &resolver));
    host.add(components.map_err(setup_failed)?);
    let gate = host.start_gate();
    host.add([objects.component(context, gate)]);
    Ok(())
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
            start: START_TIMEOUT,
            ..Timeouts::default()
        },
        token_file: Some(token),
        // This machine's name servers do not know the Services of this cluster.
        cluster_names: Some(HostRouting::default().domain),
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
        route_defaults: RouteDefaults {
            deadline: START_TIMEOUT,
            ..RouteDefaults::default()
        },
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
