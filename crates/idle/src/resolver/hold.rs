//! Holds requests and connections for sleeping services until a pod accepts them.
//!
//! [`WaitQueue`] is a plain value that decides; [`HeldRequests`] has one for each service, requests wakes
//! and releases held requests. Each service has its own queue, so a service that never becomes ready does
//! not delay others.
//!
//! Invariants:
//! - held requests are released in order of arrival, also after a pod refused one;
//! - a request that leaves, for whatever reason, frees its place, its bytes and its share of a pod;
//! - at most one wake request per service is in flight.

mod held_request;
mod held_requests;
#[cfg(test)]
mod tests;
mod times;
mod wait_queue;
mod wake;

pub use self::{
    held_request::{HeldRequest, HoldError},
    held_requests::{HeldRequests, QueueSize},
    times::HoldTimes,
    wait_queue::{Admission, Ticket, WaitQueue},
    wake::{WakeFailed, WakeRequester},
};
