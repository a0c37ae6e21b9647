//! Service addresses: what connects to a service is passed on to one of its pods.
//!
//! Each cluster address is a loopback address of this machine, on which a listener follows the
//! service's EndpointSlices; node ports are listened on as well. Which listeners there should be,
//! and to whom they lead, is decided from Services and slices alone.
//!
//! Invariant: a connection goes to one pod, and is not made again once bytes have passed.

mod decide;
mod listener;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::{Options, service};
