//! The controllers of `world`.

mod deployment;

use neap_trial::Workload;

/// One workload for each of them.
pub(crate) fn workloads() -> Vec<Workload> {
    vec![deployment::workload()]
}
