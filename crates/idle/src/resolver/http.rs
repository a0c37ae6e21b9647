//! Carries requests, one by one.
//!
//! A request is read as far as its head, answered here if the service has an answer ready, and
//! otherwise held before anything is dialled. Then it is sent once. Bodies go through as they come,
//! in both directions.

mod answer;
mod body;
mod client;
mod connection;
mod forward;
mod guard;
mod handle;
mod headers;
mod lent;
mod naming;
mod probe;
mod sent;
mod serve;
mod strict;
#[cfg(test)]
mod tests;
mod upgrade;
mod wire;

pub(super) use self::{answer::UNKNOWN, serve::TOO_SLOW};
pub use self::{
    client::Client,
    handle::Entrance,
    naming::Naming,
    probe::{Canned, Probes},
    serve::serve,
};
