//! Runs controllers under injected faults and checks the result.
//!
//! A [`Workload`] names the controllers that run and the requests that users send. A [`plan`] lists
//! the faults. A [`run`](run::run) plays both in one process under a paused clock: real
//! controllers, their production client, and `pocket` as the API server. The result is compared
//! with a run without faults ([`judge`]); a failing plan is reduced to the smallest one that still
//! fails ([`shrink`]).
//!
//! The crate depends on `pocket` and `kit`; only tests depend on it.
//!
//! Invariants:
//! - the same plan and seed produce the same trace, byte for byte;
//! - a run in which a planned fault did not strike is void, never passed.

mod actor;
mod canary;
mod canonical;
pub mod child_process;
mod cluster;
mod cluster_template;
mod comparable_state;
pub mod difference;
pub mod external;
mod fault_injector;
pub mod generate;
pub mod judge;
mod node;
pub mod operation;
mod own_writes;
mod panics;
mod paused;
pub mod plan;
pub mod poisoned_objects;
pub mod proof;
mod quiescence;
pub mod run;
mod run_state;
pub mod shrink;
pub mod start_states;
mod trace;
pub mod walk;
mod workload;

pub use cluster_template::ClusterTemplate;
pub use fault_injector::Call;
#[cfg(feature = "seeded")]
pub use neap_pocket::seeded;
pub use node::{Node, PodBehavior};
pub use paused::paused;
pub use trace::{EntryKind, TraceEntry};
pub use workload::{Step, UserRequest, Workload};
