//! The parts that every controller needs: watches, queues, leader election, plans, operations.
//!
//! This crate depends on kube and on no other crate of the workspace: the same code runs against any
//! Kubernetes API, with a kubeconfig, in a cluster, or without a socket. Decisions are pure functions
//! of values (`lease::decide`, `controller::Queue`); the components around them read, wait and write.
//!
//! Invariants:
//! - time comes from [`clock::Clock`] alone;
//! - only a leader starts a write: see [`lease::Leadership`].

// In the order of dependencies: a module uses only those above it. `cargo xtask check` enforces it.

pub mod seeded;

pub mod clock;

pub mod duration;

pub mod key;

pub mod hash;

pub mod suggest;

mod host_header;

pub mod why;

pub mod schema;

pub mod telemetry;

pub mod backoff;

pub mod client;

pub mod own_writes;

pub mod lease;

pub mod apply;

pub mod process;

pub mod watch;

pub mod event;

pub mod definitions;

pub mod status;

pub mod controller;

pub mod context;

pub mod manager;

pub mod http;

pub mod builder;

pub mod reload;

pub mod audit;

pub mod assembly;

pub mod lazy;

pub mod operation;

pub mod explain;

pub mod area;

#[cfg(test)]
mod server;
