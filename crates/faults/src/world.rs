//! The controllers of `world`.

mod daemon_set;
mod deployment;
mod disruption_budget;
mod job;
mod replica_set;
mod scheduler;
mod service;
mod stateful_set;

use neap_trial::Workload;

/// One workload for each of them.
pub(crate) fn workloads() -> Vec<Workload> {
    vec![
        daemon_set::workload(),
        deployment::workload(),
        disruption_budget::workload(),
        job::workload(),
        replica_set::workload(),
        scheduler::workload(),
        service::workload(),
        stateful_set::workload(),
    ]
}
