//! Brings objects to their desired state: one key at a time, as often as needed.
//!
//! A [`Queue`] decides which key is next and a [`Controller`] runs the reconcile for it. A reconcile
//! receives a key and nothing else, so that it reads the current state and does not rely on the
//! event that enqueued the key.
//!
//! Invariants:
//! - at most one reconcile runs for a key, and another one follows if the key was enqueued meanwhile;
//! - a key that fails waits longer each time, and no other key waits for it;
//! - a key is not reconciled again before the watches show what its last reconcile wrote;
//! - a reconcile that panics or exceeds its timeout counts as failed;
//! - a key whose failure is permanent is reconciled again when it changes or at the resync, and not before;
//! - no reconcile starts while another process leads, and no enqueued key is lost meanwhile.

mod backoff;
mod failure;
mod finished;
mod queue;
mod run;
mod state;
#[cfg(test)]
mod tests;

pub use self::{
    backoff::Backoff,
    failure::{FailureClass, ReconcileError, ReconcileFailure, previous_failures},
    queue::{NextKey, Priority, Queue},
    run::{Controller, ControllerOptions, Enqueuer, Outcome},
};
