//! Gives every pod a node that it fits on, or says why there is none.
//!
//! A node fits if it may take pods, the pod may go there by its selector and affinity and tolerates
//! the node's taints, its host ports are free and what it asks for is left. Pods are placed one
//! after the other, so that two are not given the same room, and none waits for what the server says
//! to another. A pod that fits nowhere is tried again
//! when a node changes or a pod goes. Nobody is driven away to make room.

mod decide;
mod fit;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use self::fit::taken_port;
pub use self::run::service;
