//! Service addresses: forwards connections to a Service to one of its pods.
//!
//! Each cluster IP is a loopback address of this machine, with a listener whose backends follow the
//! Service's EndpointSlices; node ports have listeners as well. The set of listeners and their
//! backends is decided from Services and slices alone.
//!
//! Invariant: a connection goes to one pod, and is not retried once bytes have passed.

mod controller;
mod decide;
mod listener;
#[cfg(test)]
mod tests;

pub use self::controller::{ProxyOptions, component};
