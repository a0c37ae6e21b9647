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
//! Changes to objects: patches of every kind, server-side apply, and who owns which field.
//!
//! Pure functions from values to values; they know schemas and refusals and nothing else. Whoever
//! calls them brings the time and the name of the writer.

pub mod apply;
pub mod managed;
