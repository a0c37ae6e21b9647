//! Keeps a pod on every node that matches a DaemonSet.
//!
//! A node gets its pod whether or not it is ready or under pressure; only the template's own
//! selector and affinity, and taints that it does not tolerate, exclude a node. A new template
//! reaches the nodes a few at a time, first those whose pod is unavailable anyway.

mod controller;
mod decide;
mod node;
mod pod;
mod rollout;
#[cfg(test)]
mod tests;

pub use self::controller::component;
