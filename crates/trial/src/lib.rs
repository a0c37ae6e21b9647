//! Controllers through every fault.
//!
//! A [`Workload`] says which controllers run and what their users do. A [`plan`] says what goes
//! wrong meanwhile. A [`run`](run::run) plays both in one process under a paused clock: real
//! controllers, the client they have in production, and `pocket` as the server. What a run left
//! behind is held against a run in which nothing went wrong ([`judge`]); a plan that breaks
//! something is made as small as it can be ([`shrink`]).
//!
//! It knows `pocket` and `kit`; only tests know it.
//!
//! Invariants:
//! - the same plan and seed give the same trace, byte for byte;
//! - a fault that was planned and did not strike makes a run void, never good.

mod actor;
pub mod apart;
mod canary;
mod canonical;
pub mod difference;
pub mod generate;
mod ground;
mod house;
pub mod judge;
mod node;
pub mod operation;
pub mod outside;
mod own;
mod panics;
mod paused;
pub mod plan;
pub mod poison;
pub mod proof;
mod rest;
pub mod run;
mod scene;
mod seam;
mod settled;
pub mod shrink;
pub mod starts;
mod trace;
pub mod walk;
mod workload;

pub use ground::Ground;
#[cfg(feature = "seeded")]
pub use neap_pocket::seeded;
pub use node::{Fate, Node};
pub use paused::paused;
pub use seam::Call;
pub use trace::{Entry, What};
pub use workload::{Deed, Step, Workload};
