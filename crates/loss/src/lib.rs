//! Services that fall asleep and wake under load, and whether every request was answered once.
//!
//! The operator, its wakes and the resolvers are the real ones; the server is `pocket`. Pods, the
//! cluster that runs them and the data plane are played here: each node's view of where a connection
//! goes lags behind the slices by as much as is asked for. Clients ask as often as is asked for,
//! whatever becomes of what they asked before. Whatever the data plane leads to a resolver goes
//! through it, byte by byte, to a pod that really answers; what it leads straight to a pod that takes
//! connections is counted as answered.
//!
//! Time is tokio's, and paused: it goes on when nobody has anything to do. So nobody may wait for
//! anything outside: the network is one in memory (`memory`), and what resolvers do on it is what
//! they do on that of a machine.
//!
//! A pod that is told to end takes connections for as long as the data plane lags, and then lets end
//! what is under way: nobody can stop a data plane that lags from leading there.
//!
//! [`really`] does the same in real time, with a real `neap up`, and with operators, resolvers and pods
//! that are processes.

mod asking;
mod cell;
mod client;
mod cluster;
mod ground;
mod ledger;
mod load;
mod memory;
mod plane;
mod play;
mod pod;
mod pods;
mod real;
mod resolvers;
mod service;
mod stage;
mod stopwatch;
mod street;
mod words;

pub use self::{
    cell::{Cell, LAGS, Protocol, RATES},
    ledger::Tally,
    play::{Asked, Outcome, Twist, play},
    pod::Pod,
    real::{Programs, RealOutcome, really},
    stopwatch::Stopwatch,
};
