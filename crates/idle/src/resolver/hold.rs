//! Holds what came for a service that sleeps until one of its pods takes it.
//!
//! [`Line`] decides and is a plain value; [`Holds`] keeps one for each service, asks for wakes and
//! tells those who wait. A service has its own line, so one that never gets ready is in nobody's way.
//!
//! Invariants:
//! - whoever waits is let go in the order of arrival, also after a pod refused it;
//! - whoever leaves, for whatever reason, takes nothing with it: no place, no byte, no share of a pod;
//! - one wake of a service is under way at a time.

mod holding;
mod holds;
mod line;
#[cfg(test)]
mod tests;
mod times;
mod wake;

pub use self::{
    holding::{Holding, Refused},
    holds::{Holds, Queued},
    line::{Arrival, Line, Ticket},
    times::Times,
    wake::{NotWoken, Waker},
};
