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
mod processes;
mod registry;
pub mod stable;

use neap_trial::Workload;

/// The workloads that join every campaign.
pub fn workloads() -> Vec<Workload> {
    vec![stable::workload()]
}

/// Workloads whose runs last hours or days, or have many processes: each of their plans takes as long as dozens of
/// others.
pub fn long_workloads() -> Vec<Workload> {
    vec![
        stable::elected(),
        nightly::workload(),
        nightly::elected(),
        imports::workload(),
        mirrors::workload(),
    ]
}
