//! The controller of ElastiServices: puts services to sleep, wakes them, and keeps resolvers in or out of
//! their path.
//!
//! [`facts`] gathers what a decision needs, [`decide`] is the pure function from facts to a decision, and
//! `act` carries the decision out; [`controller`] connects the three. Everything that must survive a
//! process is in the status of the object, so another operator continues where the last one stopped.
//!
//! Invariants:
//! - replicas are written to zero only with a proof that the data plane reaches resolvers, while resolvers
//!   are ready, and only if the target is unchanged since it was read;
//! - resolvers leave the path only after the data plane was proved to reach the pods, or with the object
//!   itself;
//! - a resolver port is in the status before it is in an EndpointSlice, and is recorded as freed before it
//!   leaves the status.

mod act;
pub(crate) mod compatible_metrics;
pub mod controller;
pub mod decide;
pub mod dry_run;
pub mod facts;
pub mod metrics;
pub mod objects;
pub mod reachability;

pub use self::controller::{Settings, component};
