//! Who owns which field: `metadata.managedFields`.
//!
//! [`track_update`] runs after every create, update and patch; [`crate::patch::apply`] is the
//! other writer of these entries. All entries are read in the schema of the version at hand, so
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
pub use entries::{BadEntry, Entry, Managers, Operation};
pub use fields_v1::BadFields;
pub use set::FieldSet;
pub use shape::Unkeyed;
pub use track::{Scope, Stamp, keep_times, track_update};
pub(crate) use track::{put_managed_fields, same_but_entries, untracked};
