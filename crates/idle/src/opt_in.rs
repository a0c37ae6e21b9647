//! Services that sleep by annotations.
//!
//! A user who does not want to write an ElastiService puts [`annotations::ENABLED`] on a Service, or on the
//! Deployment or StatefulSet behind it. The controller then maintains an ElastiService for it, with the
//! settings in the other annotations, and deletes it with the annotation: the service is woken and
//! everything that was made for it is deleted.
//!
//! [`facts`] → [`decide`]; the plan is carried out by kit.
//!
//! Invariant: an ElastiService that a user wrote is never changed, and takes precedence.

pub mod annotations;
mod controller;
mod decide;
pub mod dry_run;
mod facts;
mod limits;
#[cfg(test)]
mod tests;

pub use self::{
    controller::component,
    decide::{Decision, FROM_ANNOTATIONS, decide},
    facts::{Facts, Unreadable},
    limits::OptInLimits,
};
