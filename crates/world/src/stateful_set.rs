//! Keeps the pods of a StatefulSet: each with a number, a name and volumes that stay its own.
//!
//! Pods are made in the order of their numbers, each once the one before it is available, and ended
//! in the opposite order; a set that says `Parallel` does not wait. A new template reaches the pods
//! from the highest number down to the partition.

mod claim;
mod decide;
mod identity;
mod order;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::service;
