//! Brings objects to the state they should have: one key at a time, as often as needed.
//!
//! A [`Queue`] says which key is next and a [`Controller`] runs the reconcile for it. What a
//! reconcile is told is a key and nothing else, so that it looks at how things are and not at what
//! was said to have changed.
//!
//! Invariants:
//! - a key is worked on by one reconcile at a time, and again after whatever was said meanwhile;
//! - a key that fails waits longer each time, and no other key waits for it;
//! - a key is not worked on again before the watches show what the last work on it wrote;
//! - a reconcile that panics or hangs is one that failed;
//! - nothing is begun while another process leads, and nothing that was asked for is forgotten.

mod backoff;
mod ended;
mod queue;
mod run;
mod state;
#[cfg(test)]
mod tests;

pub use self::{
    backoff::Backoff,
    queue::{Next, Priority, Queue},
    run::{Controller, Options, Outcome, Trigger},
};
