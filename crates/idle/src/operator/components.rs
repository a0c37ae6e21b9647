//! Assembles the components of an operator.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Resource};
use neap_kit::{
    context::Context,
    key::Key,
    manager::Component,
    watch::{Cache, Selection, WatchesStopped},
};
use tokio::net::TcpListener;

use super::{
    OperatorOptions, cluster_names::ClusterNames, prove::ResolverProver,
    request_counts::ResolverRequestCounts, routes::OperatorRoutes,
};
use crate::{
    api::labels::SERVICE_NAME,
    auth::{Authenticator, TokenReviews},
    elasti_service::{self, objects::is_owned},
    http_api::{ApiClient, WAKE_RESPONSE_TIMEOUT, serve},
    opt_in,
    options::Installation,
    resolver::client::{ListResolvers, ResolverClient},
    trigger::{KnownNames, Poller, Prometheus, TriggerMonitor},
    wake::{WakeHandle, WakeRunner},
};

/// The components of an operator that receives requests for wakes on `socket`, and its waker. Wakes and
/// HTTP responses need no leadership; everything else is done only by the operator that leads.
pub fn components(
    context: &Context,
    socket: TcpListener,
    options: &OperatorOptions,
) -> Result<(Vec<Component>, WakeHandle), WatchesStopped> {
    let installation = &options.installation;
    let services = context.scoped_cache(&Selection::default())?;
    let client = ApiClient::new(context.clock, options.token_file.clone());
    let client = ResolverClient::new(client);
    let resolvers = list_resolvers(context, installation)?;
    if options.prometheus.has_unused_authorization() {
        tracing::warn!(
            "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER is set and not sent to any server: set \
             PROMETHEUS_TRIGGER_SERVER_ADDRESS, or list the servers of triggers in \
             PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS"
        );
    }
    let prometheus = Prometheus::with_names(context.clock, cluster_names(context, options)?);
    let prometheus = Arc::new(prometheus);
    let poller = Poller::new(prometheus, options.prometheus.clone(), context.clock);
    let counts = ResolverRequestCounts::new(client.clone(), resolvers.clone());
    let monitor = TriggerMonitor::new(
        context,
        services.clone(),
        poller,
        Arc::new(counts),
        options.polling_interval,
    );
    let ports = (installation.resolver_port, installation.resolver_proxy_port);
    let prover = ResolverProver::new(Arc::new(client), context.clock, ports);
    let prover = prover.with_resolvers(resolvers);
    let (waker, wakes) = WakeRunner::new(context, services.clone());
    let routes = OperatorRoutes {
        authenticator: authenticator(context, options),
        waker: waker.clone(),
        services,
        process: context.watches.process().clone(),
        clock: context.clock,
        wake_timeout: WAKE_RESPONSE_TIMEOUT,
    };
    let controller = elasti_service::component(
        context,
        elasti_service::Settings {
            installation: installation.clone(),
            resolver_ports: options.resolver_ports,
            timeouts: options.timeouts,
        },
        monitor.clone(),
        Arc::new(prover),
    )?;
    let components = vec![
        controller,
        opt_in::component(context, &installation.operator_namespace, &options.opt_in)?,
        monitor.component(options.seed),
        wakes.into(),
        serve("operator", socket, Arc::new(routes), context.clock),
    ];
    Ok((components, waker))
}

/// The names of Services, if the machine's resolver does not know them.
fn cluster_names(
    context: &Context,
    options: &OperatorOptions,
) -> Result<Option<Arc<dyn KnownNames>>, WatchesStopped> {
    let Some(domain) = options.cluster_names.clone() else {
        return Ok(None);
    };
    let services = context.scoped_cache(&Selection::default())?;
    Ok(Some(Arc::new(ClusterNames { services, domain })))
}

/// Resolvers may request wakes, and so may operators, which know the dependencies of a service.
fn authenticator(context: &Context, options: &OperatorOptions) -> Authenticator {
    let reviews = Arc::new(TokenReviews::new(context.client.clone(), context.clock));
    let it = &options.installation;
    let accounts = [
        (&*it.resolver_namespace, &*it.resolver_account),
        (&*it.operator_namespace, &*it.operator_account),
    ];
    Authenticator::for_service_accounts(reviews, accounts)
        .allow_unauthenticated(options.allow_unauthenticated_resolvers)
}

/// The internal ports of all resolvers in the EndpointSlices of their Service, ready or not.
fn list_resolvers(
    context: &Context,
    installation: &Installation,
) -> Result<ListResolvers, WatchesStopped> {
    let services: Cache<Service> = context.scoped_cache(&Selection::default())?;
    let Installation {
        resolver_namespace,
        resolver_service,
        ..
    } = installation;
    let selection = Selection {
        labels: Some(format!("{SERVICE_NAME}={resolver_service}")),
        fields: None,
    };
    let api = Api::namespaced(context.client.clone(), resolver_namespace);
    let slices: Cache<EndpointSlice> = context.watches.cache(api, selection)?;
    let service = Key::new(resolver_namespace, resolver_service);
    let port = installation.resolver_port;
    Ok(Arc::new(move || {
        let service = services.get(&service);
        let uid = service.as_deref().and_then(|it| it.meta().uid.clone());
        let all = slices.list("");
        let owned = all
            .iter()
            .filter(|slice| is_owned(&***slice, uid.as_deref()));
        let endpoints = owned.flat_map(|slice| slice.endpoints.iter().flatten());
        let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
        let addresses = addresses.filter_map(|address| address.parse().ok());
        let ports: BTreeSet<_> = addresses
            .map(|address: IpAddr| SocketAddr::new(address, port))
            .collect();
        ports.into_iter().collect()
    }))
}
