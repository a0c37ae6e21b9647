//! The services of a process: named, watched over, and ended together.
//!
//! A [`Manager`] runs [`Service`]s until it is told to stop. None of them may end before that: a
//! process that goes on without one of its parts looks well and is not. The process is ready once
//! every watch has listed and every service that has something to say about it agrees; [`Health`]
//! says what is missing in words, and a small HTTP listener tells whoever asks.
//!
//! Invariants:
//! - a service that ends or panics before the stop ends the run, with its name and the cause;
//! - services that others need are stopped after them, in the order of their [`Turn`]s: the work, the
//!   audit of it, the anchor of the audit, and then what all of them stand on;
//! - a stop takes no longer than the grace period; who does not end in its share of it is cut off,
//!   so that the turns after it have theirs, and is named.

mod accept;
mod health;
mod listener;
mod service;
mod supervise;
#[cfg(test)]
mod tests;

pub use self::{
    accept::accept,
    health::{Health, State},
    listener::{listener, secure_listener},
    service::{Service, Turn},
    supervise::{Error, Manager},
};
