//! Services that sleep at zero replicas and wake on the first connection.
//!
//! An `ElastiService` connects a Service with the workload behind it. While the service is idle, the workload
//! is scaled to zero, and resolvers take the place of its pods in the data plane, on a port of their own for
//! each port of the Service; the Service itself is never edited. The first connection wakes the service, is
//! held until a pod accepts it, and then goes directly there. Resolvers leave the path once the data plane is
//! proved to reach the pods.
//!
//! Invariants:
//! - replicas are written to zero only after the data plane was proved to reach a resolver;
//! - resolvers leave the path only after the data plane was proved to reach the pods;
//! - a request that was sent to a pod is never sent again.
//!
//! The modules are listed in the order of their dependencies, not of the alphabet: a module uses only those
//! above it, and `cargo xtask check` fails otherwise. The comment before each keeps rustfmt from sorting them.

// The custom resource, names, labels, annotations and wire types: the contract with the outside. No I/O.
pub mod api;

// A reason for programs and for people.
pub mod reason;

// The state of a service in words; pure.
pub mod account;

// The registration of the area: error codes, definition, kinds, check; pure.
pub mod area;

// What the options of both roles have in common.
pub mod options;

// Authentication of HTTP callers by ServiceAccount tokens.
pub mod auth;

// The HTTP server and client between operators and resolvers.
pub mod http_api;

// The resolver: holds connections of services that sleep, and passes them on to pods.
pub mod resolver;

// The workload behind a service, and its KEDA ScaledObject.
pub mod target;

// Wakes services on request.
pub mod wake;

// Polls triggers: whether a service is in use.
pub mod trigger;

// Settings for all services of a namespace.
pub mod namespaces;

// The controller of ElastiServices: facts, decide, act.
pub mod elasti_service;

// The controller that creates ElastiServices from annotations.
pub mod opt_in;

// The operator: both controllers, the trigger polls, the wakes and its HTTP routes.
pub mod operator;

// Operator and resolver as processes of their own.
pub mod process;

use neap_kit::{
    context::Context,
    manager::{Component, Health},
    watch::WatchesStopped,
};
use tokio::net::TcpListener;

use self::{
    operator::OperatorOptions,
    resolver::{ResolverOptions, Sockets},
};

/// The components of an operator and a resolver in one process, as `neap up` runs them. For a process with
/// one role there are [`process::operator`] and [`process::resolver`].
pub fn components(
    context: &Context,
    health: Health,
    operator: (TcpListener, &OperatorOptions),
    resolver: (Sockets, &ResolverOptions),
) -> Result<Vec<Component>, WatchesStopped> {
    let (mut components, _) = operator::components(context, operator.0, operator.1)?;
    let (others, _) = resolver::components(context, resolver.0, health, resolver.1)?;
    components.extend(others);
    Ok(components)
}
