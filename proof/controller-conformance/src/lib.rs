//! Compares world's controllers with the real kube-controller-manager: both get the same objects
//! and the same pod behaviour, and the resulting objects are compared.
//!
//! A scenario is a list of steps in its own namespace. The nodes are simulated, and the behaviour
//! of a pod is in its template, so it is the same for both. The real controllers work on the real
//! server in real time; ours on the embedded one under a paused clock.

pub mod api;
pub mod judge;
pub mod node;
pub mod normalize;
pub mod ours;
pub mod play;
pub mod scenario;
pub mod theirs;
pub mod write_tracker;
