//! Binds every pod to a node that it fits on, or reports why there is none.
//!
//! A pod fits a node if the node is schedulable and matches the pod's selector and affinity, the
//! pod tolerates the node's taints, its host ports are free, and its requests are still available.
//! Pods are assigned one after the other, so that two do not get the same resources, and none waits
//! for the API server's answer for another. An unschedulable pod is tried again when a node changes
//! or a pod ends. There is no preemption.

mod controller;
mod decide;
mod fit;
#[cfg(test)]
mod tests;

pub use self::controller::component;
pub(crate) use self::fit::conflicting_host_port;
