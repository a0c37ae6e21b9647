//! The move from client-side to server-side apply.
//!
//! kubectl used to merge on its own, leaving its last configuration in an annotation and its
//! fields under the Update manager `kubectl-client-side-apply`. The first server-side apply by
//! `kubectl` is the same person's next apply: it may change what still has the value that was
//! applied last, and keeps the annotation current for those who go back. What it does not name
//! stays with its manager; kubectl itself moves those fields to the applier and applies again.

use serde_json::{Map, Value};

use crate::{
    patch::managed::{Element, FieldSet, Stamp, compare},
    schema::Schema,
};

const APPLIER: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The most that all annotations of an object may take.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The last client-side configuration of `live`, if `stamp` is of one who may take it over.
pub(super) fn last_applied<'v>(live: Option<&'v Value>, stamp: &Stamp<'_>) -> Option<&'v str> {
    if stamp.manager != APPLIER || stamp.subresource.is_some() {
        return None;
    }
    let text = live?["metadata"]["annotations"]
        .get(LAST_APPLIED)?
        .as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The annotation, which the server keeps although no configuration names it.
pub(super) fn annotation() -> FieldSet {
    let mut annotation = FieldSet::default();
    annotation.insert(&["metadata", "annotations", LAST_APPLIED].map(Element::field));
    annotation
}

/// The fields of the last client-side configuration that still have the value it gave them.
/// Whoever else is said to own those, the applier may change them.
pub(super) fn unchanged(
    schema: Schema<'_>,
    live: &Value,
    last_applied: &str,
    stamp: &Stamp<'_>,
) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(last_applied).ok()?;
    if last["apiVersion"] != stamp.api_version {
        return None;
    }
    let changes = compare(schema, Some(&last), live);
    let fields = FieldSet::of_value(schema, &last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(fields)
}

/// Writes the new configuration into the annotation, unless it has grown too big for one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let mut config = config.clone();
    if let Some(annotations) = annotations_of(&mut config) {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{config}\n");
    let Some(annotations) = annotations_of(object) else {
        return;
    };
    if text.len() > ANNOTATIONS_LIMIT {
        annotations.remove(LAST_APPLIED);
    } else {
        annotations.insert(LAST_APPLIED.into(), text.into());
    }
}

fn annotations_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}
