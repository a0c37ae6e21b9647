//! Wakes services: scales their workloads from zero.
//!
//! A resolver that has a request for a service requests its wake, and the services that it depends on are
//! woken with it. A [`WakeHandle`] passes the request to the [`WakeRunner`], so the wake continues after the
//! caller has closed its connection. Every operator wakes, whether it leads or not: two that write the same
//! number of replicas do no harm, and a service must not stay asleep because the leader is dead.
//!
//! Invariants:
//! - replicas are only ever raised, and only if the target is unchanged since it was read;
//! - each ElastiService has one wake in progress, and a request that arrives meanwhile gets another one
//!   after it: the first may have read the target before the request arrived;
//! - an autoscaler that would scale it down again is resumed before the replicas are written.

mod attempt;
mod cause;
mod closure;
mod metrics;
mod runner;
#[cfg(test)]
mod tests;

pub(crate) use self::cause::{REQUEST, needed_by};
pub use self::runner::{PendingWake, WakeHandle, WakeOutcome, WakeQueueFull, WakeRunner};
use self::{cause::WakeCause, closure::closure};
