//! Keeps the Endpoints of a Service true, for those who still read them.
//!
//! They say the same as EndpointSlices in one object and fewer words: an address is ready or not,
//! and a pod on its way out is not told of. A Service without a selector is left to whoever wrote
//! it.

mod decide;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::service;
