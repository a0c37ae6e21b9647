//! Field paths: the position of a value in its object, as errors name it.

pub(super) use crate::schema::FieldPath as Path;
