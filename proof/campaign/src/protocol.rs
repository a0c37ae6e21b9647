//! The messages between a campaign and its workers, one per line.

use neap_trial::{
    TraceEntry,
    difference::Difference,
    judge::{PlanOutcome, Violation},
    walk::WalkReport,
};
use serde::{Deserialize, Serialize};

/// A request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerRequest {
    /// Play these plans, given as text, all of one workload and seed.
    Play {
        workload: String,
        seed: u64,
        plans: Vec<String>,
    },
    /// Activate this planted mistake, or none.
    Plant { bug: Option<String> },
    /// Play a run without faults and return its trace.
    Show { workload: String, seed: u64 },
    /// Reduce this plan, which fails like this.
    Shrink { plan: String, found: Violation },
    /// Walk this chain of properties.
    Walk {
        subject: String,
        chain: usize,
        seed: u64,
    },
    /// Play `count` start states, starting with number `from`.
    StartState {
        workload: String,
        from: u64,
        count: u64,
        seed: u64,
    },
}

/// The response of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerResponse {
    /// The outcome of each plan.
    Played(Vec<PlanOutcome>),
    Planted,
    /// The trace, and the violations without any fault.
    Shown {
        entries: Vec<TraceEntry>,
        says: Vec<Violation>,
    },
    /// The reduced plan, the steps of the workload that it needs, and how its run differs from one
    /// without faults.
    Shrunk {
        plan: String,
        steps: Vec<String>,
        difference: Option<Difference>,
    },
    WalkReport(WalkReport),
    /// The numbers of the failing start states, with their violations.
    Started(Vec<(u64, Vec<Violation>)>),
    Failed(String),
}
