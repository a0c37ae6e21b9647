//! The resolver as a component of its process.

use neap_kit::manager::Component;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    drain::{DrainState, DrainTimeouts, drain},
    http::ListenPort,
    listeners,
    net::Listener,
    route_watcher::RouteWatcher,
    workers::ConnectionWorkers,
};

/// Serves the ports of the table that `route_watcher` maintains, and `shared` for all services. When
/// stopped, it shuts down with [`drain`] and is not ready meanwhile.
pub fn component(
    workers: impl Into<ConnectionWorkers>,
    route_watcher: RouteWatcher,
    shared: TcpListener,
    drain_state: DrainState,
    timeouts: DrainTimeouts,
) -> Component {
    let workers = workers.into();
    let state = drain_state.clone();
    let run = move |stop| run(workers, route_watcher, shared, drain_state, timeouts, stop);
    Component::new("resolver", run).ready_when(move || {
        let draining = state.is_draining();
        draining.then(|| "the resolver is shutting down".to_owned())
    })
}

async fn run(
    workers: ConnectionWorkers,
    route_watcher: RouteWatcher,
    shared: TcpListener,
    drain_state: DrainState,
    timeouts: DrainTimeouts,
    stop: CancellationToken,
) {
    let resolver = &workers.resolver;
    // Held requests are still forwarded after the listeners have closed, so the route watcher and the
    // queues stop later.
    let (listeners, rest) = (CancellationToken::new(), CancellationToken::new());
    let end = async {
        stop.cancelled().await;
        let left = drain(resolver, &drain_state, &listeners, timeouts).await;
        if left > 0 {
            tracing::warn!(left, "connections were cut off at shutdown");
        }
        rest.cancel();
    };
    let shared = match Listener::over(shared) {
        Ok(shared) => shared,
        Err(error) => return tracing::error!(%error, "cannot listen on the shared port"),
    };
    let everyone = listeners::accept(
        workers.clone(),
        shared,
        ListenPort::Shared,
        listeners.clone(),
    );
    tokio::join!(
        end,
        everyone,
        route_watcher.run(rest.clone()),
        resolver.held_requests.clone().run(rest.clone()),
        listeners::run(workers.clone(), listeners.clone()),
    );
}
