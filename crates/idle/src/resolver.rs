//! The proxy that answers for sleeping services and requests their wake.
//!
//! Each port of a service has its own port on the resolver ([`routes`], [`listeners`]). A connection is
//! held until a pod accepts it ([`hold`], [`connect`], over [`net`]), and is then forwarded byte by byte
//! ([`tcp`], [`tls`]) or request by request ([`http`]), always on one thread ([`workers`]). The rest of
//! the process reads which connections were accepted ([`accepted_connections`], [`probe`]), when each
//! service was last requested ([`activity`]) and how much is held
//! ([`hold::HeldRequests::queue_sizes`]), and shuts the resolver down ([`drain`]). [`run`] makes a
//! component of it, and [`setup`] adds the other components of its process.
//!
//! Invariants:
//! - nothing is sent to a pod before a connection to it is established, and what was sent is never sent
//!   again;
//! - memory does not grow with the number of forwarded bytes.

pub mod accepted_connections;
pub mod activity;
pub mod client;
pub mod connect;
pub mod drain;
pub mod events;
pub mod hold;
pub mod http;
pub mod internal_api;
pub mod internal_routes;
pub mod listeners;
pub mod net;
pub mod operator_client;
mod options;
pub mod probe;
pub mod resolver_addresses;
pub mod route_watcher;
pub mod routes;
pub mod run;
pub mod setup;
mod shared_port;
pub mod tcp;
pub mod tls;
pub mod workers;

use std::{fmt::Display, net::IpAddr, sync::Arc, time::Duration};

use neap_kit::{
    clock::Clock,
    key::Key,
    telemetry::{Meter, Telemetry},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    accepted_connections::AcceptedConnections,
    activity::{ActivityTracker, OpenRequest},
    events::{ColdStartServed, RequestReceived, RequestRejected, ResolverMetrics},
    hold::{HeldRequest, HeldRequests, HoldError, WakeRequester},
    http::ConnectionPool,
    net::Net,
    routes::{Route, RouteTableReader},
};
pub use self::{
    options::ResolverOptions,
    setup::{Sockets, components},
};
use crate::api::{Breakdown, Protocol};

/// Default of [`Resolver::client_timeout`]: longer than any well-behaved client needs.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The state that all stages of a connection share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The clock of every timeout.
    pub clock: Clock,
    /// The current routes.
    pub route_table: RouteTableReader,
    /// Requests and connections that wait for a pod.
    pub held_requests: HeldRequests,
    /// Connections that were accepted recently.
    pub accepted: AcceptedConnections,
    /// The last request of each service.
    pub activity: ActivityTracker,
    /// HTTP connections to pods.
    pub pool: ConnectionPool,
    /// The tasks of all connections.
    pub tasks: TaskTracker,
    /// Cancelled when connections have to close after their current request.
    pub shutdown: CancellationToken,
    /// How the shared port derives the service from the host.
    pub host_routing: Arc<http::HostRouting>,
    /// Metrics and logs of requests.
    pub meter: Meter<ResolverMetrics>,
    /// Whether KubeElasti's metrics have labels whose values clients choose.
    pub unbounded_metrics: bool,
    /// The longest that a client may take to send the head of a request, also between two requests.
    pub client_timeout: Duration,
    /// The address that the resolver listens on; all addresses of the host if absent.
    pub host: Option<IpAddr>,
    /// The network; see [`Resolver::with_network`].
    net: Net,
}

impl Resolver {
    /// Counts a request or connection as open until the returned guard is dropped.
    fn start_request(&self, route: &Route) -> OpenRequest {
        let protocol = route.port.protocol;
        self.meter.emit(&RequestReceived { protocol });
        self.activity.start_request(&route.service.key)
    }

    /// Records that a held request was answered, and returns where its time went. `None` if it was not
    /// held.
    fn record_served(&self, held: &HeldRequest) -> Option<Breakdown> {
        if !held.was_held() {
            return None;
        }
        let route = held.route();
        let breakdown = held.times().breakdown(self.clock.uptime());
        held.complete_trace("served", &breakdown);
        self.activity
            .record_cold_start(&route.service.key, breakdown);
        self.meter.emit(&ColdStartServed {
            service: &route.service.key,
            protocol: route.port.protocol,
            breakdown,
        });
        Some(breakdown)
    }

    /// Records that a request was refused before anything was sent to a pod.
    fn record_refused(&self, held: &HeldRequest, why: &HoldError) {
        if let HoldError::DeadlineExceeded { breakdown, .. } = why {
            held.complete_trace(why.reason(), breakdown);
        }
        self.record_rejected(held.route(), why.reason(), why);
    }

    /// Records that a request was not answered by a pod.
    fn record_rejected(&self, route: &Route, reason: &'static str, why: &dyn Display) {
        self.meter.emit(&RequestRejected {
            service: Some(&route.service.key),
            protocol: route.port.protocol,
            reason,
            why: why.to_string(),
        });
    }

    /// Records that a client sent no request within [`Self::client_timeout`].
    fn record_client_timeout(&self, service: Option<&Key>, protocol: Protocol) {
        self.meter.emit(&RequestRejected {
            service,
            protocol,
            reason: http::TOO_SLOW,
            why: "the client sent no request in time".to_owned(),
        });
    }

    /// A resolver for the services of `route_table`, which requests wakes from `waker`.
    pub fn new(
        clock: Clock,
        route_table: RouteTableReader,
        waker: Arc<dyn WakeRequester>,
        host_routing: http::HostRouting,
        telemetry: &Telemetry,
    ) -> Self {
        let tasks = TaskTracker::new();
        let meter = events::meter(telemetry);
        let held_requests = HeldRequests::new(
            clock,
            route_table.clone(),
            waker,
            tasks.clone(),
            meter.clone(),
        );
        events::register_queue_gauges(telemetry, &held_requests);
        Self {
            clock,
            held_requests,
            route_table,
            accepted: AcceptedConnections::new(clock),
            activity: ActivityTracker::new(clock),
            pool: ConnectionPool::new(clock, tasks.clone()),
            tasks,
            shutdown: CancellationToken::new(),
            host_routing: Arc::new(host_routing),
            meter,
            unbounded_metrics: false,
            client_timeout: CLIENT_TIMEOUT,
            host: None,
            net: Net::default(),
        }
    }

    /// Replaces the network of the host by another one.
    #[must_use]
    pub fn with_network(mut self, net: Net) -> Self {
        self.pool.net = net.clone();
        self.net = net;
        self
    }
}
