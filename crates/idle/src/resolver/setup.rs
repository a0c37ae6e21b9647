//! Assembles the components of a resolver process: the resolver, its internal port, its client of the
//! operator, and the addresses of the other resolvers.

use std::sync::Arc;

use kube::Api;
use neap_kit::{
    context::Context,
    manager::{Component, Health},
    watch::{Cache, Selection, WatchesStopped},
};
use tokio::net::TcpListener;

use super::{
    Resolver, ResolverOptions, drain::DrainState, internal_api::InternalApi,
    internal_routes::InternalRoutes, operator_client::OperatorClient, resolver_addresses,
    route_watcher::RouteWatcher, routes::RouteTableReader, run, workers::ConnectionWorkers,
};
use crate::{
    api::ElastiService,
    auth::{Authenticator, TokenReviews},
    http_api::{ApiClient, serve},
};

/// The sockets of a resolver besides the ports of its services.
#[derive(Debug)]
pub struct Sockets {
    /// For the operator and for health checks.
    pub internal: TcpListener,
    /// For all services, distinguished by host.
    pub shared: TcpListener,
}

/// The components of a resolver, and the resolver itself for callers in this process.
pub fn components(
    context: &Context,
    sockets: Sockets,
    health: Health,
    options: &ResolverOptions,
) -> Result<(Vec<Component>, Resolver), WatchesStopped> {
    let (publish, route_table) = RouteTableReader::new();
    let namespaces: Vec<_> = options.namespaces.iter().cloned().collect();
    let (client, watches) = (&context.client, &context.watches);
    let route_watcher = RouteWatcher::new(
        client,
        watches,
        &namespaces,
        options.route_defaults,
        publish,
    )?;
    let client = ApiClient::new(context.clock, options.token_file.clone());
    let process = watches.process().clone();
    let waker = Arc::new(OperatorClient::new(
        client,
        options.operator_address.clone(),
    ));
    let host_routing = options.host_routing.clone();
    let mut resolver = Resolver::new(
        context.clock,
        route_table,
        waker,
        host_routing,
        process.telemetry(),
    );
    resolver.host = options.listen_host;
    resolver.unbounded_metrics = options.unbounded_metrics;
    let it = &options.installation;
    let (namespace, service) = (&it.resolver_namespace, &it.resolver_service);
    let addresses =
        resolver_addresses::component(context, namespace, service, resolver.accepted.clone())?;
    let internal_api = InternalApi {
        resolver: resolver.clone(),
        services: elasti_services(context, &namespaces)?,
        health,
        process,
    };
    let routes = InternalRoutes {
        authenticator: authenticator(context, options),
        resolver: Arc::new(internal_api),
    };
    let Sockets { internal, shared } = sockets;
    let (drain_state, timeouts) = (DrainState::default(), options.drain);
    let workers = ConnectionWorkers::new(resolver.clone(), options.worker_threads.clone());
    let components = vec![
        run::component(workers, route_watcher, shared, drain_state, timeouts),
        addresses,
        serve("internal-api", internal, Arc::new(routes), context.clock),
    ];
    Ok((components, resolver))
}

/// The caches of ElastiServices, which the route watcher uses as well.
fn elasti_services(
    context: &Context,
    namespaces: &[String],
) -> Result<Vec<Cache<ElastiService>>, WatchesStopped> {
    let of = |api| context.watches.cache(api, Selection::default());
    let client = || context.client.clone();
    if namespaces.is_empty() {
        return Ok(vec![of(Api::all(client()))?]);
    }
    let each = namespaces.iter();
    each.map(|namespace| of(Api::namespaced(client(), namespace)))
        .collect()
}

fn authenticator(context: &Context, options: &ResolverOptions) -> Authenticator {
    let reviews = Arc::new(TokenReviews::new(context.client.clone(), context.clock));
    let it = &options.installation;
    let operator = (&*it.operator_namespace, &*it.operator_account);
    Authenticator::for_service_accounts(reviews, [operator])
        .allow_unauthenticated(options.allow_unauthenticated_operators)
}
