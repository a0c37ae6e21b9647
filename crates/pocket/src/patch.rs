//! Changes to objects: patches of every kind, server-side apply, and who owns which field.
//!
//! Pure functions from values to values; they know schemas and refusals and nothing else. Whoever
//! calls them brings the time and the name of the writer.

pub mod apply;
pub mod managed;
