//! The schemas of the five configurations, and whether a configuration has them.
//!
//! A program reads its configuration strictly: an unknown field, a wrong type or two members of one oneof
//! keep it from starting. [`check`] finds the same before anything is rolled out, and [`older_form`] names
//! what an older configuration has to be changed to.
//!
//! The schemas are data: which messages have which fields. An image's tag says which of them it reads.

mod check;
mod history;
mod model;
mod scalar;
#[cfg(test)]
mod tests;
mod version;

pub use self::{
    check::{Finding, check},
    history::older_form,
    model::{Field, Program, Schema},
    scalar::duration,
    version::{SchemaVersion, TagVersion, version_of},
};
