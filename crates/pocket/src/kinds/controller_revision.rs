//! ControllerRevision (apps/v1): a snapshot of a template; its data is immutable.

use super::{
    Rules, Traits,
    field_rules::{immutable, non_negative},
    fields::{fill, is_set},
    path::Path,
};

pub(super) const RULES: Rules = Rules {
    default: |object| fill(object, "revision", 0),
    validate: |object, problems| {
        if !is_set(object, "data") {
            problems.required("data", "data is mandatory");
        }
        non_negative(object, &Path::Root, &["revision"], problems);
    },
    validate_update: |new, old, problems| immutable(new, old, &Path::Root, "data", problems),
    traits: Traits {
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};
