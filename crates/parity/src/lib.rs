//! Holds world's controllers against the real kube-controller-manager: both are given the same
//! objects and the same pods' lives, and what they leave behind is compared.
//!
//! A scenario is a list of steps in a namespace of its own. The nodes are played, and what becomes
//! of a pod is written on its template, so it is the same for both. The real controllers work on
//! the real server in real time; ours on the embedded one under a paused clock.

pub mod api;
pub mod judge;
pub mod node;
pub mod ours;
pub mod plain;
pub mod play;
pub mod quiet;
pub mod scenario;
pub mod theirs;
