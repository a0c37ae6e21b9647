//! Keeps the pods of a StatefulSet: each has an ordinal, a stable name and its own volumes.
//!
//! Pods are created in the order of their ordinals, each once the one before it is available, and
//! deleted in the opposite order; with the policy `Parallel` they do not wait for each other. A new
//! template reaches the pods from the highest ordinal down to the partition.

mod claims;
mod controller;
mod decide;
mod identity;
mod order;
#[cfg(test)]
mod tests;

pub use self::controller::component;
