//! The built-in admission plugins: what the server itself adds to a valid write, or refuses of it.
//!
//! Each plugin is a function of values: the object, and the others it depends on. `rest` calls them
//! and decides their order.

pub mod limit_ranger;
pub mod quota;
pub mod runtime_class;
mod usage;

pub use usage::{Amounts, pod_requirements};
