//! RuntimeClass (node.k8s.io/v1).

use super::{
    Rules, Traits,
    field_rules::{immutable, obeys},
    fields::{entries, text},
    names,
    path::Path,
};

pub(super) const RULES: Rules = Rules {
    validate: |object, problems| {
        let handler = text(object, "handler");
        if !handler.is_empty() {
            obeys(names::label, handler, &Path::At("handler"), problems);
        }
        let path = Path::At("scheduling.nodeSelector");
        for (key, value) in entries(&object["scheduling"], "nodeSelector") {
            obeys(names::qualified, key, &path, problems);
            obeys(
                names::label_value,
                value.as_str().unwrap_or_default(),
                &path,
                problems,
            );
        }
    },
    validate_update: |new, old, problems| {
        immutable(new, old, &Path::Root, "handler", problems);
    },
    traits: Traits {
        unconditional_update: false,
        create_on_update: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};
