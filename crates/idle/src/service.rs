//! One ElastiService: what it should be doing, and why.
//!
//! [`facts`] are what is there, [`decide`] says what follows from them, [`run`] reads the one and
//! carries the other out. Everything that must outlive a process is in the status of the object, so
//! whoever comes next goes on where the last one died.
//!
//! Invariants:
//! - replicas are written to zero only with a proof at hand that the data plane reaches resolvers,
//!   while resolvers are ready, and only if what runs is still as it was looked at;
//! - resolvers leave the path only after the data plane was proved to reach the pods, or with the
//!   object itself;
//! - a port of the resolvers is in the status before it is in a slice, and written down as freed
//!   before it leaves the status.

pub mod breakdown;
pub(crate) mod compatible;
pub mod conflict;
pub mod decide;
pub mod facts;
pub(crate) mod namespaces;
pub mod numbers;
pub mod objects;
pub mod ports;
pub mod prove;
pub mod resting;
pub mod run;
pub mod switches;
pub mod verdict;
