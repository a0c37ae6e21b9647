//! What the server itself adds to a write, or refuses of it, after its form was found right.
//!
//! Each plugin is a function of values: the object, and the others it depends on. Who asks them,
//! and in which order, is the machine's affair.

pub mod limit_ranger;
pub mod quota;
pub mod runtime_class;
mod usage;

pub use usage::{Amounts, pod_requirements};
