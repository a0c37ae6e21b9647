//! Starts the Jobs of a CronJob at their scheduled times.
//!
//! A Job is named after its scheduled minute, so each time is started once, whatever happens
//! between creating the Job and writing the status. Of missed times only the last is started.
//! Finished Jobs remain as history, up to the specified limits.

mod controller;
mod decide;
mod schedule;
#[cfg(test)]
mod tests;

pub use self::controller::component;
