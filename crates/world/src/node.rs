//! The node: pods as processes of this machine.

pub mod launch;
pub mod pod;
