//! The writes of a reconcile, until the watches of this process have observed them.
//!
//! The lowest module of the three that meet here: writers record what they wrote, watches report how
//! far they have come, and controllers wait until the watches have caught up with the writes. It
//! depends on none of them.

mod expectation;
mod pending;
mod reconcile_observer;

pub(crate) use self::{
    expectation::Expectation,
    pending::{PendingWrites, Written, record_delete, record_write},
};
pub use self::{
    expectation::{IsSelected, ObservedWatch, ObservedWatches, WatchAt, WatchPosition},
    pending::current_reconcile,
    reconcile_observer::{ReconcileObserver, ReconcileStart},
};
