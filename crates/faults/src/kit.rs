//! What every controller is built on: the election, watches, plans that are applied, operations.
//!
//! A tool does nothing by itself, so each workload has a small controller that does little else than
//! to use it.

mod apply;
mod lease;
mod operation;
mod watch;

use neap_trial::Workload;

/// One workload for each tool.
pub(crate) fn workloads() -> Vec<Workload> {
    vec![
        apply::workload(),
        lease::workload(),
        operation::workload(),
        watch::workload(),
    ]
}
