//! The controllers of releases under fault plans.
//!
//! A workload runs them as they are deployed, in two processes. Around them are a registry and Prow, which
//! are the emulators, and the Jobs of the cluster ([`jobs`]). What a run must never show, whatever struck
//! it, is in [`oracles`]; the comparison with a run without faults comes from the trial itself.
//!
//! Only tests and the campaign depend on this crate.

pub mod imports;
mod jobs;
pub mod mirrors;
pub mod nightly;
pub mod oracles;
pub mod play;
mod processes;
mod registry;
pub mod stable;

use neap_trial::Workload;

/// The workloads that join the campaign.
pub fn workloads() -> Vec<Workload> {
    vec![stable::workload()]
}
