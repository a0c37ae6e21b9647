//! Keeps a pod on every node that fits a DaemonSet.
//!
//! A node gets its pod whether or not it is ready or under pressure; what keeps a pod away is the
//! template's own selector and affinity, and taints that it does not tolerate. A new template
//! reaches the nodes a few at a time, those first where the pod does not work anyway.

mod decide;
mod node;
mod pod;
mod roll;
mod run;
#[cfg(test)]
mod tests;

pub use self::run::service;
