//! Services that sleep by an annotation.
//!
//! Who does not want to write an ElastiService puts [`annotations::ENABLED`] on a Service, or on the
//! Deployment or StatefulSet behind it. An ElastiService is then kept in its name, with what the other
//! annotations say, and goes with the annotation: the service is woken and everything is as before.
//!
//! Invariant: an ElastiService that somebody wrote is never changed, and comes first.

pub mod annotations;
mod decide;
mod run;
#[cfg(test)]
mod tests;

pub use self::{
    decide::{Decision, FROM, Facts, decide},
    run::service,
};
