//! The node: pods as processes of this machine.

pub mod address;
mod environment;
mod field;
pub mod image;
pub mod launch;
pub mod pod;
pub mod process;
pub mod source;
pub mod volume;
