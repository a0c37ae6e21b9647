//! Services that sleep at zero and wake on the first connection.
//!
//! An `ElastiService` ties a Service to what runs behind it. While nobody asks for it, what runs is
//! scaled to zero and resolvers take the place of its pods in the data plane, on a port of their own
//! for each port of the Service; the Service itself is never edited. The first connection wakes it,
//! is held until a pod takes it, and then goes straight there; resolvers leave the path once the data
//! plane is proved to reach the pods.
//!
//! Invariants:
//! - replicas are written to zero only after the data plane was proved to reach a resolver;
//! - a resolver leaves the path only after the data plane was proved to reach the pods;
//! - what was sent to a pod once is never sent again.

pub mod account;
pub mod api;
pub mod operator;
pub mod opt_in;
pub mod process;
pub mod resolver;
pub mod service;
pub mod target;
pub mod trigger;
pub mod wake;
