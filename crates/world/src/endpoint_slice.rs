//! Keeps the EndpointSlices of a Service up to date: its pods, their addresses and ports, and their
//! conditions.
//!
//! Pods with the same port numbers share slices of at most a hundred endpoints. A pod stays in its
//! slice, so that a change writes few slices. A Service without pods has one empty slice; the
//! slices of a Service without a selector are not touched.

mod controller;
mod decide;
#[cfg(test)]
mod tests;

pub use self::controller::component;
