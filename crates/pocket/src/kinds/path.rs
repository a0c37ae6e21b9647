//! Where a value is in its object, in the word that refusals use: a field path.

pub(super) use crate::schema::Place as Path;
