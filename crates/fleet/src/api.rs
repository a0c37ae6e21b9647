//! The API versions: what clients read and write, as tables over one internal model.
//!
//! A table says for each field how it is read, who may change it, and whether it is secret. Projection,
//! merge and the check of changes are the same code for all versions.

mod fields;
mod table;
#[cfg(test)]
mod tests;
mod versions;

pub use self::{
    fields::{Field, Kind, Rule},
    table::{Absent, Mismatch, changed_property, merge, overlay, project},
    versions::{ADMIN, ApiVersion, find, names},
};
