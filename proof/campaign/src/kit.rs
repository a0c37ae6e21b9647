//! Workloads for `kit`: leader election, watches, apply plans, operations.
//!
//! Each has a small controller that does little more than use one module of `kit`.

mod apply;
mod lease;
mod operation;
mod watch;

use neap_trial::Workload;

pub(crate) fn workloads() -> Vec<Workload> {
    vec![
        apply::workload(),
        lease::workload(),
        operation::workload(),
        watch::workload(),
    ]
}
