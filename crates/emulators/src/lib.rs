//! Systems outside a cluster, small: what the areas call when there is no real one.
//!
//! A system is a `tower` service over a state value: [`system::Emulator`] adds a log of the calls and
//! a book of faults, [`listen`](listen::listen) binds it to a socket, and [`network::Network`] puts it
//! under a client of `kit` without one. A system that works through the Kubernetes API (Prow) is a
//! list of components of `kit` instead.
//!
//! The crate depends on `kit` and on no other crate of ours, and speaks the wire protocols of the
//! real systems, so that the areas use their production clients against it.
//!
//! Invariants:
//! - time comes from `kit`'s clock, so that a system can be played under a paused one;
//! - only injected faults break connections: every request has an answer, and bad input a clear one;
//! - bodies are streamed or bounded.

// In the order of dependencies: a module uses only those above it. `cargo xtask check` enforces it.

pub mod call_log;

pub mod fault_book;

pub mod system;

pub mod network;

pub mod listen;

pub mod build_queue;

pub mod remote_execution;

pub mod registry;

pub mod prow;

pub mod hive;
