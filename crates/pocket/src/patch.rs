//! Patches: a change described by the client, applied to the live object.
//!
//! Every kind of patch is a function from two values to a value or a refusal. Nothing here reads
//! the store or the clock, so that the REST machine may apply a patch again after a conflict.
//! Depends on [`crate::schema`] and [`crate::status`].

mod bounds;
pub mod json;
pub mod merge;
pub mod strategic;

pub use bounds::MAX_DEPTH;
