//! The parts of a built-in object that exist before any client set them.
//!
//! kube-apiserver holds a built-in object as a struct whose inner structs exist from the start
//! (`spec`, `template`, `strategy`) unless they are optional. Those are never new, so their writer
//! does not own them as such: `f:spec: {"f:replicas"}` has no `.`, while `f:rollingUpdate`, which
//! is optional, has one. A custom object starts empty.

use crate::schema::{Schema, Type, Zero, conform::is_struct};

/// Whether the field `name` exists in every struct of type `schema`.
pub(super) fn has(schema: Option<Schema<'_>>, name: &str) -> bool {
    let Some(schema) = schema.filter(|schema| schema.is_builtin()) else {
        return false;
    };
    let Some(part) = schema.property(name) else {
        return false;
    };
    let held = schema.node().held.and_then(|held| held.field(name));
    let (container, zero) = (
        matches!(part.node().ty, Type::Object | Type::Array),
        held.map_or(Zero::Kept, |field| field.zero),
    );
    match zero {
        Zero::Written => container,
        Zero::Dropped => container && is_struct(part.node()),
        Zero::Kept | Zero::Gone => false,
    }
}
