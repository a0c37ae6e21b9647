//! A farm: the custom resources of the five kinds that belong together, and everything that is made for them.
//!
//! One decision is about a whole farm, because its parts depend on each other: the configuration of a worker
//! contains the shards of the storage, a roll-out waits for the components before it, and a scheduler is
//! restarted when its workers are drained. [`facts`] → [`decide`] → [`act`].
//!
//! Invariants:
//! - a configuration that does not pass the checks is not rolled out;
//! - a workload is changed only when all components before it are ready with their newest configuration;
//! - a worker with a running action is not stopped before its drain is over;
//! - clients stop reading a shard before it is stopped.

pub mod act;
mod component;
pub mod controller;
pub mod decide;
pub mod drain;
mod drain_failures;
pub mod dry_run;
pub mod facts;
pub mod objects;
pub mod pool_queue;
pub mod refusals;
pub mod rollout;
pub mod rollout_operation;
pub mod settings;
pub mod storage_plan;
#[cfg(test)]
mod tests;
pub mod validate;

pub use self::component::{Component, ComponentKind, ComponentSpec};
