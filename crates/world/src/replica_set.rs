//! Keeps the number of pods that a ReplicaSet specifies.
//!
//! Its pods are those it controls by owner reference; orphaned pods that match its selector are
//! adopted, its own that no longer match are released. When there are too many, the pod that is
//! missed least is deleted first.

mod controller;
mod decide;
#[cfg(test)]
mod tests;

pub use self::controller::component;
