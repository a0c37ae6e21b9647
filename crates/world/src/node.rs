//! The node: pods as processes of this machine.

mod environment;
mod field;
pub mod launch;
pub mod pod;
pub mod source;
pub mod volume;
