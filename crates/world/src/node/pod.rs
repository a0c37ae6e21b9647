//! One pod on this node: which of its processes should run, and its status.
//!
//! [`decide`] computes both from facts, without access to processes, clocks or the API server. The
//! caller starts and stops containers as decided, records the results in [`Facts`], and calls it
//! again.
//!
//! Invariants:
//! - init containers run one after another and before all others; sidecars start in their turn and
//!   stop after all others, in reverse order;
//! - a container that keeps ending is restarted with an increasing backoff;
//! - a pod that has succeeded or failed runs no more processes.

mod decide;
mod events;
mod facts;
mod status;
#[cfg(test)]
mod tests;

pub use self::{
    decide::{Decision, StopMode, decide},
    events::events,
    facts::{
        ContainerFacts, EndedProcess, Facts, NODE_STOPPED, ProcessState, START_ERROR, WaitingReason,
    },
};
