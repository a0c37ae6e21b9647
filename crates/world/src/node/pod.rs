//! One pod on this node: which of its processes should run, and what is said of it.
//!
//! [`decide`] makes both of what is known, and knows no process, clock or server. Whoever calls it
//! starts and stops what it says, notes what came of it in [`Facts`], and asks again.
//!
//! Invariants:
//! - init containers run one after another and before all others; sidecars start in their turn and
//!   stop after all others, in reverse;
//! - a container that keeps ending waits longer each time before it is started again;
//! - a pod that has succeeded or failed runs nothing any more.

mod decide;
mod facts;
mod news;
mod status;
#[cfg(test)]
mod tests;

pub use self::{
    decide::{Decision, Stop, decide},
    facts::{Ended, Facts, NODE_STOPPED, Obstacle, Process, START_ERROR, Seen},
    news::news,
};
