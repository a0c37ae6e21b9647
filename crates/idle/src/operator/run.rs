//! The operator, put together.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{core::v1::Service as KubeService, discovery::v1::EndpointSlice};
use kube::{Api, Resource};
use neap_kit::{
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Selection},
};
use tokio::net::TcpListener;

use super::{
    asking::{Asking, OUTCOME_WITHIN},
    http::{OperatorRoutes, serve},
    prove::Proofs,
    resolvers::{Counted, Places as Whereabouts, Resolvers},
    settings::{Places, Settings},
    tokens::{Door, Reviews},
};
use crate::{
    opt_in,
    service::{
        facts::Patience,
        objects::{SERVICE_NAME, is_owned},
        ports::Range,
        run,
    },
    trigger::{Defaults, Judge, Poll, Prometheus},
    wake::{WakeService, Waker},
};

/// What an operator is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where everybody is.
    pub places: Places,
    /// The time between two polls of triggers.
    pub polling_interval: Duration,
    /// Whom triggers ask.
    pub prometheus: Defaults,
    /// The ports that resolvers stand in on.
    pub resolver_ports: RangeInclusive<u16>,
    /// How long is waited for what.
    pub patience: Patience,
    /// Resolvers need no token.
    pub open: bool,
    /// Where its own token is, if not where pods have it.
    pub token: Option<PathBuf>,
    /// Sets it apart from others that were started with it.
    pub seed: u64,
}

impl Options {
    /// What a process was told by variables and flags.
    pub fn of(settings: &Settings, seed: u64) -> Self {
        Self {
            places: settings.places.clone(),
            polling_interval: settings.polling_interval,
            prometheus: settings.prometheus.clone(),
            resolver_ports: settings.resolver_ports.clone(),
            patience: Patience {
                grace: settings.grace,
                ..Patience::default()
            },
            open: settings.flags.allow_unauthenticated_resolvers,
            token: settings.whereabouts.token.clone(),
            seed,
        }
    }
}

/// An operator at `site` that is asked for wakes on `socket`: its services, and who wakes. Wakes and
/// answers need no leadership; everything else is done by the one that leads.
pub fn services(
    site: &Site,
    socket: TcpListener,
    options: &Options,
) -> Result<(Vec<Service>, Waker), Ended> {
    let all = site.here(&Selection::default())?;
    let mut asking = Asking::new(site.clock);
    if let Some(token) = &options.token {
        asking = asking.showing(token.clone());
    }
    let (resolvers, whereabouts) = (Resolvers::from(asking), whereabouts(site, &options.places)?);
    if options.prometheus.is_sent_to_nobody() {
        tracing::warn!(
            "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER is set and sent to nobody: set \
             PROMETHEUS_TRIGGER_SERVER_ADDRESS, or name the servers that triggers ask in \
             PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS"
        );
    }
    let oracle = Arc::new(Prometheus::new(site.clock));
    let poll = Poll::new(oracle, options.prometheus.clone(), site.clock);
    let counted = Counted::new(resolvers.clone(), whereabouts.clone());
    let interval = options.polling_interval;
    let judge = Judge::new(site, all.clone(), poll, Arc::new(counted), interval);
    let ports = (
        options.places.resolver_port,
        options.places.resolver_proxy_port,
    );
    let prover = Proofs::new(Arc::new(resolvers), site.clock, ports).asking(whereabouts);
    let (waker, wakes) = WakeService::new(site, all.clone());
    let routes = OperatorRoutes {
        door: door(site, options),
        waker: waker.clone(),
        services: all,
        process: site.watches.process().clone(),
        clock: site.clock,
        patience: OUTCOME_WITHIN,
    };
    let keeper = run::service(site, kept(options), judge.clone(), Arc::new(prover))?;
    let services = vec![
        keeper,
        opt_in::service(site, &options.places.operator_namespace)?,
        judge.service(options.seed),
        wakes.into(),
        serve("operator", socket, Arc::new(routes), site.clock),
    ];
    Ok((services, waker))
}

fn kept(options: &Options) -> run::Settings {
    let places = &options.places;
    let (first, last) = (
        *options.resolver_ports.start(),
        *options.resolver_ports.end(),
    );
    run::Settings {
        namespace: places.operator_namespace.clone(),
        resolver_namespace: places.resolver_namespace.clone(),
        resolver_service: places.resolver_service.clone(),
        range: Range { first, last },
        patience: options.patience,
    }
}

/// Resolvers may ask for wakes, and so may operators: whoever knows of one that is needed.
fn door(site: &Site, options: &Options) -> Door {
    let reviews = Arc::new(Reviews::new(site.client.clone(), site.clock));
    let places = &options.places;
    let accounts = [
        (&*places.resolver_namespace, &*places.resolver_account),
        (&*places.operator_namespace, &*places.operator_account),
    ];
    Door::for_accounts(reviews, accounts).standing_open(options.open)
}

/// The internal ports of all resolvers that the slices of their Service show, ready or not.
fn whereabouts(site: &Site, places: &Places) -> Result<Whereabouts, Ended> {
    let services: Cache<KubeService> = site.here(&Selection::default())?;
    let selection = Selection {
        labels: Some(format!("{SERVICE_NAME}={}", places.resolver_service)),
        fields: None,
    };
    let api = Api::namespaced(site.client.clone(), &places.resolver_namespace);
    let slices: Cache<EndpointSlice> = site.watches.of(api, selection)?;
    let service = Key::new(&places.resolver_namespace, &places.resolver_service);
    let port = places.resolver_port;
    Ok(Arc::new(move || {
        let service = services.get(&service);
        let uid = service.as_deref().and_then(|it| it.meta().uid.clone());
        let all = slices.list("");
        let theirs = all
            .iter()
            .filter(|slice| is_owned(&***slice, uid.as_deref()));
        let endpoints = theirs.flat_map(|slice| slice.endpoints.iter().flatten());
        let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
        let addresses = addresses.filter_map(|address| address.parse().ok());
        let places: BTreeSet<_> = addresses
            .map(|address: IpAddr| SocketAddr::new(address, port))
            .collect();
        places.into_iter().collect()
    }))
}
