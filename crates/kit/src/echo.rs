//! One's own writes, until the watches show them.
//!
//! A room below the others: those who write say here what they wrote, those who watch how far they
//! have come, and those who reconcile wait here for the one to catch up with the other. It knows none
//! of them.

mod observer;
mod own;
mod sign;

pub use self::{
    observer::{Beginning, Observer},
    own::at_work,
    sign::{Echo, Echoes, Stand},
};
pub(crate) use self::{
    own::{Own, removed, wrote},
    sign::Sign,
};
