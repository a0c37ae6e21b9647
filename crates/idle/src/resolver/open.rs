//! A resolver with everything around it: whom it asks, who asks it, and what it knows of the others.

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use kube::Api;
use neap_kit::{
    manager::{Health, Service},
    site::Site,
    watch::{Cache, Ended, Selection},
};
use tokio::net::TcpListener;

use super::{
    Resolver,
    drain::{Ending, Patience},
    follow::Follow,
    http::Naming,
    inside::Inside,
    lanes::{Lanes, Threads},
    operator::Operator,
    peers,
    routes::{Defaults, Limits, Tables},
    run,
};
use crate::{
    api::ElastiService,
    operator::{
        asking::Asking,
        http::{ResolverRoutes, serve},
        settings::{Places, ResolverSettings},
        tokens::{Door, Reviews},
    },
};

/// So late some node may hear of a resolver's end: its endpoint changes, an operator changes the slices
/// of all that sleep, and the data plane follows.
const LAG: Duration = Duration::from_secs(20);
/// What is cut off at the end has this time to notice.
const REST: Duration = Duration::from_secs(8);

/// What a resolver is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where everybody is.
    pub places: Places,
    /// Host and port where an operator is asked for wakes.
    pub operator: String,
    /// The address that it has; all of the machine if absent.
    pub host: Option<IpAddr>,
    /// The namespaces that are looked at; all if there is none.
    pub namespaces: BTreeSet<String>,
    /// What counts where an ElastiService says nothing.
    pub defaults: Defaults,
    /// How services are named on the shared port.
    pub naming: Naming,
    /// How long its end may take.
    pub patience: Patience,
    /// Operators need no token.
    pub open: bool,
    /// Where its own token is, if not where pods have it.
    pub token: Option<PathBuf>,
    /// Whether what clients choose is a label of the original's numbers.
    pub unbounded_metrics: bool,
    /// Which carry connections; without any, they are carried where they were accepted.
    pub threads: Threads,
}

impl Options {
    /// What a process was told by variables.
    pub fn of(settings: &ResolverSettings) -> Self {
        let usual = Defaults::default();
        Self {
            places: settings.places.clone(),
            operator: settings.operator_address(),
            host: settings.whereabouts.host,
            namespaces: settings.namespaces.clone(),
            defaults: Defaults {
                deadline: settings.request_timeout,
                limits: Limits {
                    requests: settings.queue_size.max(1),
                    ..usual.limits
                },
            },
            naming: Naming {
                header: Some(settings.header_for_host.clone()),
                domain: settings.cluster_domain.clone(),
            },
            patience: patience(settings.drain),
            open: settings.allow_unauthenticated_operators,
            token: settings.whereabouts.token.clone(),
            unbounded_metrics: settings.unbounded_metrics,
            threads: Threads::default(),
        }
    }
}

/// The parts of an end that takes no longer than `all`.
fn patience(all: Duration) -> Patience {
    let (lag, rest) = (LAG.min(all / 4), REST.min(all / 4));
    let held = all.saturating_sub(lag + rest);
    Patience { lag, held, rest }
}

/// Where a resolver listens besides the ports of its services.
#[derive(Debug)]
pub struct Sockets {
    /// For operators and probes.
    pub internal: TcpListener,
    /// For all services, by the header that names them.
    pub shared: TcpListener,
}

/// A resolver at `site`: its services, and the resolver itself for whoever asks it in this process.
pub fn services(
    site: &Site,
    sockets: Sockets,
    health: Health,
    options: &Options,
) -> Result<(Vec<Service>, Resolver), Ended> {
    let (publish, tables) = Tables::new();
    let namespaces: Vec<_> = options.namespaces.iter().cloned().collect();
    let (client, watches) = (&site.client, &site.watches);
    let follow = Follow::new(client, watches, &namespaces, options.defaults, publish)?;
    let mut asking = Asking::new(site.clock);
    if let Some(token) = &options.token {
        asking = asking.showing(token.clone());
    }
    let process = watches.process().clone();
    let waker = Arc::new(Operator::new(asking, options.operator.clone()));
    let naming = options.naming.clone();
    let mut resolver = Resolver::new(site.clock, tables, waker, naming, process.telemetry());
    resolver.host = options.host;
    resolver.unbounded_metrics = options.unbounded_metrics;
    let places = &options.places;
    let (namespace, service) = (&places.resolver_namespace, &places.resolver_service);
    let peers = peers::service(site, namespace, service, resolver.taken.clone())?;
    let inside = Inside {
        resolver: resolver.clone(),
        services: known(site, &namespaces)?,
        health,
        process,
    };
    let routes = ResolverRoutes {
        door: door(site, options),
        resolver: Arc::new(inside),
    };
    let Sockets { internal, shared } = sockets;
    let (ending, patience) = (Ending::default(), options.patience);
    let lanes = Lanes::new(resolver.clone(), options.threads.clone());
    let services = vec![
        run::service(lanes, follow, shared, ending, patience),
        peers,
        serve("inside", internal, Arc::new(routes), site.clock),
    ];
    Ok((services, resolver))
}

/// The same caches that the table is made from.
fn known(site: &Site, namespaces: &[String]) -> Result<Vec<Cache<ElastiService>>, Ended> {
    let of = |api| site.watches.of(api, Selection::default());
    let client = || site.client.clone();
    if namespaces.is_empty() {
        return Ok(vec![of(Api::all(client()))?]);
    }
    let each = namespaces.iter();
    each.map(|namespace| of(Api::namespaced(client(), namespace)))
        .collect()
}

fn door(site: &Site, options: &Options) -> Door {
    let reviews = Arc::new(Reviews::new(site.client.clone(), site.clock));
    let places = &options.places;
    let operator = (&*places.operator_namespace, &*places.operator_account);
    Door::for_accounts(reviews, [operator]).standing_open(options.open)
}
