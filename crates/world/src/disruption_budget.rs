//! Says how many pods of a PodDisruptionBudget may be taken away now.
//!
//! The answer is in the budget's status, where an eviction looks and notes whom it has taken, so
//! that two of them do not both take the last that may go.

mod decide;
mod owners;
mod run;
mod several;
#[cfg(test)]
mod tests;

pub use self::run::service;
