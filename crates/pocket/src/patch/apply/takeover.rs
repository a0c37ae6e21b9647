//! Migration from client-side to server-side apply.
//!
//! kubectl used to merge on its own, leaving its last configuration in an annotation and its fields
//! under the Update manager `kubectl-client-side-apply`. The first server-side apply by `kubectl`
//! continues that: it may change the fields that still have the value applied last, and keeps the
//! annotation current for clients that go back. Fields it does not name stay with their manager;
//! kubectl itself moves those fields to the applier and applies again.

use serde_json::{Map, Value};

use crate::{
    patch::managed::{Element, FieldSet, Stamp, compare},
    schema::Schema,
};

const APPLIER: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Bytes that all annotations of an object may take, at most.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The last client-side configuration of `live`, if the manager of `stamp` may take it over.
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

/// The fields of the last client-side configuration that still have the value it gave them. The
/// applier may change them, even if other managers own them.
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

/// Writes the new configuration into the annotation, unless it is too large for one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let mut config = config.clone();
    if let Some(annotations) = annotations_of(&mut config) {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{config}\n");
    let Some(annotations) = annotations_of(object) else {
        return;
    };
    if text.len() > MAX_ANNOTATIONS_BYTES {
        annotations.remove(LAST_APPLIED);
    } else {
        annotations.insert(LAST_APPLIED.into(), text.into());
    }
}

fn annotations_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}
