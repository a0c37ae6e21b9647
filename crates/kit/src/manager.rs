//! The components of a process: named, supervised, and stopped together.
//!
//! A [`Manager`] runs [`Component`]s until it is stopped. None of them may end before that: a process
//! that continues without one of its components looks healthy and is not. The process is ready once
//! every watch has listed and every component with a readiness check is ready; [`Health`] reports what
//! is missing, and a small HTTP listener serves it.
//!
//! Invariants:
//! - a component that ends or panics before the stop ends the run, with its name and the cause;
//! - components are stopped in the order of their [`ShutdownPhase`]s: controllers, then the audit of
//!   their writes, then the anchor of the audit, then what all of them depend on;
//! - a stop takes no longer than the grace period; a component that does not end in its share of it is
//!   aborted, so that the later phases have theirs, and is named.

mod accept;
mod component;
mod health;
mod listener;
mod supervise;
#[cfg(test)]
mod tests;

pub use self::{
    accept::accept,
    component::{Component, ShutdownPhase},
    health::{ComponentState, Health},
    listener::{listener, secure_listener},
    supervise::{ComponentStarter, Error, Manager},
};
