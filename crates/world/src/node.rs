//! The node: pods as processes of this machine.
//!
//! [`run`] looks at one pod at a time: it gathers what the pod is made of, puts its volumes in
//! place, and starts and stops what [`pod::decide`] says. A process is started by [`launch`], in
//! rooms of its own.
//!
//! Invariant: nothing that was started outlives the node.

pub mod access;
pub mod address;
mod environment;
mod family;
mod field;
mod gather;
mod hosts;
pub mod image;
pub mod launch;
mod link;
pub mod pod;
mod probe;
pub mod process;
mod recipe;
pub mod register;
mod run;
pub mod source;
pub mod trial;
pub mod volume;

pub use self::run::{Access, Options, open, service};
