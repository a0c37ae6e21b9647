//! From zero to as many as it takes.
//!
//! A wake is asked for by a resolver that has a request for a service, and wakes what that one needs
//! with it. A [`Waker`] passes it to a [`WakeService`], so it goes on when the one who asked has hung
//! up. Any operator wakes, whether it leads or not: two that write the same number do no harm, and a
//! service must not sleep on because the leader is dead.
//!
//! Invariants:
//! - replicas are only ever raised, and only in the very state in which they were read;
//! - each ElastiService has one wake under way, and whoever asks meanwhile has a look of their own
//!   after it: what was seen before they asked says nothing about now;
//! - what must not scale it down again is un-paused before the replicas are written.

mod cause;
mod closure;
mod flight;
mod metrics;
mod service;
#[cfg(test)]
mod tests;

pub(crate) use self::flight::is_due;
pub use self::service::{Full, Outcome, Pending, WakeService, Waker};
use self::{cause::Cause, closure::closure};
