//! Services that sleep and wake under load, and whether every request was answered once.
//!
//! The operator, its wake component and the resolvers are the real ones; the API server is
//! `pocket`. Pods, the cluster that runs them and the data plane are simulated: each node's view of
//! where a connection goes lags behind the EndpointSlices by the requested time. Clients send
//! requests at the requested rate, whatever happens to earlier ones. A connection that the data
//! plane leads to a resolver goes through it, byte by byte, to a pod that really answers; one that
//! it leads directly to a pod that accepts connections counts as answered.
//!
//! Time is tokio's paused clock: it advances when no task has anything to do. So no task may wait
//! for anything outside: the network is one in memory (`memory`), and resolvers use it as they use
//! that of a machine.
//!
//! A terminating pod accepts connections for as long as the data plane lags, and then finishes the
//! requests in flight: nothing can stop a lagging data plane from leading there.
//!
//! [`run_real`] does the same in real time, with a real `neap up`, and with operators, resolvers and
//! pods as processes.

mod addresses;
mod cell;
mod client;
mod data_plane;
mod environment;
mod ledger;
mod load;
mod memory;
mod payloads;
mod pod;
mod pod_simulator;
mod pods;
mod proof_requests;
mod real;
mod resolvers;
mod run;
mod service;
mod simulation;

pub use neap_load::stopwatch::Stopwatch;

pub use self::{
    cell::{Cell, LAGS, Protocol, RATES},
    ledger::RequestTally,
    pod::Pod,
    real::{Programs, RealOutcome, run_real},
    run::{Deviation, RunOptions, SimulatedOutcome, run_cell},
};
