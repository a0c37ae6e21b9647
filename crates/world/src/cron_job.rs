//! Starts the Jobs of a CronJob when their time has come.
//!
//! A Job is named by its minute, so each time is started once, whatever happens between making the
//! Job and writing that it was made. Of the times that were missed only the last is made up for.
//! Jobs that are over are kept as history, as many as are asked for.

mod decide;
mod run;
#[cfg(test)]
mod tests;
mod times;

pub use self::run::service;
