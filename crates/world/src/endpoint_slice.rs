//! Keeps the EndpointSlices of a Service true: which pods answer for it, where, and how they are.
//!
//! Pods that name their ports alike share slices of at most a hundred. A pod stays in the slice in
//! which it is, so that a change is a write to few of them. A Service without pods has one slice
//! that is empty; one without a selector is left to whoever wrote it.

mod decide;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::service;
