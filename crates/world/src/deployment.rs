//! Keeps a Deployment's pods at its template, with one ReplicaSet for each template it has had.
//!
//! The ReplicaSet of the current template grows while the others shrink, within the limits of the
//! strategy; empty ReplicaSets of former templates remain as the revisions to roll back to. A
//! Deployment that is paused, or whose replica count has changed, only spreads its pods over the
//! ReplicaSets it has.

mod annotation;
mod condition;
mod controller;
mod decide;
mod history;
mod replica_sets;
mod rollout;
mod scale;
mod size;
mod status;
#[cfg(test)]
mod tests;

pub use self::controller::component;
