//! Field ownership: `metadata.managedFields`.
//!
//! [`track_update`] runs after every create, update and patch; [`crate::patch::apply`] is the other
//! writer of these entries. All entries are read in the schema of the request's version, so
//! versions of a kind must agree on the names of their fields.

mod compare;
mod element;
mod entries;
mod fields_v1;
mod of_value;
pub mod scaled;
mod set;
pub(crate) mod shape;
#[cfg(test)]
mod tests;
mod track;
mod zero;

pub use compare::{Comparison, compare};
pub use element::Element;
pub use entries::{Entry, InvalidEntry, ManagerOperation, Managers};
pub use fields_v1::InvalidFieldsV1;
pub use set::FieldSet;
pub use shape::Unkeyed;
pub use track::{EndpointScope, Stamp, keep_times, track_update};
pub(crate) use track::{put_managed_fields, same_but_entries, untracked};
