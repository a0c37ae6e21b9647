//! What a campaign and its workers say to each other, a line each.

use neap_trial::{
    Entry,
    difference::Difference,
    judge::{Outcome, Violation},
    walk::Walked,
};
use serde::{Deserialize, Serialize};

/// What a worker is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Play these plans, written as text, all of one workload and seed.
    Play {
        workload: String,
        seed: u64,
        plans: Vec<String>,
    },
    /// Show what passes in a run without faults.
    Show { workload: String, seed: u64 },
    /// Make this plan smaller, which goes wrong like this.
    Shrink { plan: String, found: Violation },
    /// Walk through this chain of properties.
    Walk {
        subject: String,
        chain: usize,
        seed: u64,
    },
    /// Play so many start states, beginning with this number.
    Start {
        workload: String,
        from: u64,
        count: u64,
        seed: u64,
    },
}

/// What it says when it is done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// What came of each plan.
    Played(Vec<Outcome>),
    /// What passed.
    Shown(Vec<Entry>),
    /// The smaller plan, the steps of the workload it needs, and where its run parts from one
    /// without faults.
    Shrunk {
        plan: String,
        steps: Vec<String>,
        difference: Option<Difference>,
    },
    /// What came of the chain.
    Walked(Walked),
    /// The numbers of the start states that went wrong, and how.
    Started(Vec<(u64, Vec<Violation>)>),
    /// It could not be done.
    Failed(String),
}
