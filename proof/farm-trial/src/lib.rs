//! The controller of farms under fault plans.
//!
//! A workload runs the operator, the controllers of Deployments and StatefulSets, and what workers do at
//! their [`scheduler`]. That scheduler misbehaves by the clock, faults or not: it serves old lists, does not
//! answer, restarts, and loses its drains. Its workers always have work, so a worker that is stopped without
//! a drain is stopped with an action. What a run must never show is in [`oracle`]; the comparison with a run
//! without faults comes from the trial itself.
//!
//! Only tests and the campaign depend on this crate.

pub mod life;
pub mod oracle;
mod processes;
pub mod scheduler;
pub mod shards;

use neap_trial::Workload;

/// The workloads that join the campaign.
pub fn workloads() -> Vec<Workload> {
    vec![life::workload(), life::elected(), shards::workload()]
}
