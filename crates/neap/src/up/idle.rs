//! Services that sleep, in `neap up`: an operator and a resolver in this process, as a cluster has them
//! in pods. They speak to each other over sockets and show each other tokens, as they do there.

mod home;

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderName;
use neap_idle::{
    operator::{self, settings::Places},
    resolver::{
        drain,
        http::Naming,
        lanes::Threads,
        net,
        open::{self, Sockets},
        routes::Defaults,
    },
    service::facts::Patience,
    trigger,
};
use neap_kit::{
    manager::{Health, Service},
    site::Site,
};
use neap_world::node::address::Block;
use tokio::net::TcpListener;

use crate::exit::{Exit, Failure};

/// Where both of them are, and what they are called there: as the manifests of deploy/idle have it.
const NAMESPACE: &str = "elasti";
const RESOLVER: &str = "elasti-resolver";
const RESOLVER_SERVICE: &str = "elasti-resolver-service";
const OPERATOR: &str = "elasti-operator-controller-manager";
const OPERATOR_SERVICE: &str = "elasti-operator-controller-service";
const INTERNAL: u16 = 8013;
const SHARED: u16 = 8012;
/// Names a service on the shared port, as the chart has it.
const HEADER: HeaderName = HeaderName::from_static("x-envoy-decorator-operation");

/// Triggers are asked so often. There is one resolver, near by, so it costs next to nothing.
const POLL: Duration = Duration::from_secs(5);
/// Pods here have four seconds to end, so whoever is held has less.
const DRAIN: drain::Patience = drain::Patience {
    lag: Duration::ZERO,
    held: Duration::from_secs(1),
    rest: Duration::from_secs(1),
};

/// The services of both, with their tokens in `folder`, and what keeps their objects.
pub(super) fn services(
    site: &Site,
    block: Block,
    folder: &Path,
    health: Health,
) -> Result<Vec<Service>, Failure> {
    let (resolver_host, operator_host) = hosts(block);
    let home = home::Home {
        resolver: resolver_host,
        tokens: folder.to_owned(),
    };
    let sockets = Sockets {
        internal: bind(resolver_host, INTERNAL)?,
        shared: bind(resolver_host, SHARED)?,
    };
    let asked = bind(operator_host, INTERNAL)?;
    let resolver = resolver(resolver_host, operator_host, token(folder, RESOLVER));
    let operator = operator(token(folder, OPERATOR));
    let (mut services, _) = operator::run::services(site, asked, &operator).map_err(ended)?;
    let (others, _) = open::services(site, sockets, health, &resolver).map_err(ended)?;
    services.extend(others);
    services.push(home.service(site));
    Ok(services)
}

/// Addresses of the block that no pod gets: the one after the node's, and the next.
fn hosts(block: Block) -> (IpAddr, IpAddr) {
    let node = u32::from(block.node());
    let after = |count| IpAddr::V4(Ipv4Addr::from(node + count));
    (after(1), after(2))
}

fn token(folder: &Path, account: &str) -> PathBuf {
    folder.join(format!("{account}.token"))
}

fn places() -> Places {
    Places {
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

fn operator(token: PathBuf) -> operator::run::Options {
    operator::run::Options {
        places: places(),
        polling_interval: POLL,
        prometheus: trigger::Defaults::default(),
        resolver_ports: 20_000..=29_999,
        // The data plane is one process, so once it was seen to follow, all of it has.
        patience: Patience {
            grace: Duration::from_secs(1),
            ..Patience::default()
        },
        open: false,
        token: Some(token),
        seed: 0,
    }
}

fn resolver(host: IpAddr, operator: IpAddr, token: PathBuf) -> open::Options {
    open::Options {
        places: places(),
        operator: SocketAddr::new(operator, INTERNAL).to_string(),
        host: Some(host),
        namespaces: BTreeSet::new(),
        defaults: Defaults::default(),
        naming: Naming {
            header: Some(HEADER),
            ..Naming::default()
        },
        patience: DRAIN,
        open: false,
        token: Some(token),
        unbounded_metrics: false,
        threads: Threads::default(),
    }
}

fn bind(host: IpAddr, port: u16) -> Result<TcpListener, Failure> {
    net::bind(Some(host), port).map_err(|error| {
        let what = format!("cannot listen on {}", SocketAddr::new(host, port));
        Failure::new("NT-IDLE-0004", Exit::Refused, &what, &error.to_string())
            .remedy("end the program that listens on port 8012 or 8013 at all addresses, or run the API alone: neap up --bare")
    })
}

fn ended(error: neap_kit::watch::Ended) -> Failure {
    let what = "services that sleep cannot be looked after";
    Failure::new("NT-IDLE-0005", Exit::Failed, what, &error.to_string())
        .remedy("start it again; with -vv the log says more")
}
