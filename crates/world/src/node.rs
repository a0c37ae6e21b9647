//! The node: runs pods as processes of this machine.
//!
//! [`controller`] reconciles one pod at a time: it collects the objects that the pod refers to,
//! mounts its volumes, and starts and stops what [`pod::decide`] decides. A process is started by
//! [`launch`], in its own namespaces.
//!
//! Invariant: no process that the node started outlives it.

pub mod access;
pub mod address;
mod container_launch;
mod controller;
mod downward_api;
mod environment;
mod hosts_file;
pub mod image;
pub mod launch;
pub mod namespace_support;
pub mod pod;
mod probe;
pub mod process;
mod process_tree;
pub mod register;
mod service_env;
mod source_reader;
pub mod sources;
pub mod volume;

pub use self::controller::{Access, NodeOptions, component, component_with_access};
