//! Keeps the Endpoints of a Service up to date, for clients that still read them.
//!
//! They contain the same as EndpointSlices in one object with less detail: an address is ready or
//! not, and a pod that is being deleted is left out. The Endpoints of a Service without a selector
//! are not touched.

mod controller;
mod decide;
#[cfg(test)]
mod tests;

pub use self::controller::component;
