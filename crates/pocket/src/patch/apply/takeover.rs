//! The move from client-side to server-side apply.
//!
//! kubectl used to merge on its own, leaving its last configuration in an annotation and its
//! fields under the Update manager `kubectl-client-side-apply`. The first server-side apply by
//! `kubectl` is the same person's next apply: it takes those fields over instead of meeting them
//! as a stranger's, and keeps the annotation current for those who go back.

use serde_json::{Map, Value};

use crate::{
    patch::managed::{Element, Entry, FieldSet, Managers, Operation, Stamp, compare},
    schema::Schema,
};

const APPLIER: &str = "kubectl";
const CLIENT_SIDE: &str = "kubectl-client-side-apply";
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

/// Moves what client-side apply owned to the applier, which then owns it as if it had applied it.
pub(super) fn adopt(managers: &mut Managers, stamp: &Stamp<'_>) {
    let client_side = managers.extract(|entry| {
        entry.manager == CLIENT_SIDE
            && entry.operation == Operation::Update
            && entry.subresource.is_empty()
    });
    for entry in client_side {
        managers.join(Entry::by(stamp, Operation::Apply, entry.fields));
    }
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
