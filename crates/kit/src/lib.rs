//! What every controller needs, written once.
//!
//! This crate knows kube and nothing of ours: the same code runs against any Kubernetes API, by
//! kubeconfig, in a cluster, or without a socket. Decisions are values that are made from values
//! (`lease::decide`, `controller::Queue`); the services around them only read, ask and carry out.
//!
//! Invariants:
//! - time comes from [`clock::Clock`] alone;
//! - a write is begun only by somebody who may write: see [`lease::Leadership`].

pub mod apply;
pub mod audit;
pub mod clock;
pub mod controller;
pub mod echo;
pub mod event;
pub mod explain;
pub mod key;
pub mod lease;
pub mod manager;
pub mod operation;
pub mod process;
pub mod schema;
pub mod seeded;
#[cfg(test)]
mod server;
pub mod site;
pub mod status;
pub mod telemetry;
pub mod watch;
pub mod why;
pub mod wiring;
