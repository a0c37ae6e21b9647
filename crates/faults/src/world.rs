//! The controllers of `world`.

mod deployment;

use neap_trial::Workload;

/// One workload for each of them.
pub fn workloads() -> Vec<Workload> {
    vec![deployment::workload()]
}
