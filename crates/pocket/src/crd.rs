//! Custom resource definitions: what they may say, and what they make of the objects they define.
//!
//! Everything here is pure: a definition is read once into a [`Definition`], and its objects are
//! pruned, defaulted and validated as values. It may use `schema` and `status`, and nothing else.
//! The invariant: a definition that passed review compiles, and no rule in it can run without end.

pub mod cel;
pub mod compile;
pub mod default;
pub mod path;
mod place;
pub mod prune;
pub mod validate;
