//! Reports how many pods of a PodDisruptionBudget may be disrupted now.
//!
//! The number is in the budget's status, where an eviction reads it and records the pod it evicts,
//! so that two evictions do not both take the last pod allowed.

mod controller;
mod decide;
mod multiple_budgets;
mod pod_controllers;
#[cfg(test)]
mod tests;

pub use self::controller::component;
