//! Custom resource definitions: their validation, and how they apply to the objects they define.
//!
//! Everything here is pure: a definition is parsed once into a [`Definition`], and its objects are
//! pruned, defaulted and validated as values. It may use `schema` and `status`, and nothing else.
//! The invariant: a definition that passed review compiles, and no rule in it can run without end.

mod accept;
pub mod cel;
pub mod compile;
pub mod default;
pub mod definition;
mod embedded;
pub mod path;
mod pattern;
pub mod prune;
mod review;
#[cfg(test)]
mod tests;
pub mod validate;

pub use accept::{NameConflict, accept, begin_removal, propose};
pub use definition::{
    Definition, DefinitionVersion, PrinterColumn, ResourceNames, ResourceScope, ScaleSubresource,
};
pub use path::JsonPath;
