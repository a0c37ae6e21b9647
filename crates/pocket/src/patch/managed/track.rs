//! Field ownership after a create, an update or a patch.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Comparison, Element, Entry, FieldSet, ManagerOperation, Managers, compare};
use crate::schema::Schema;

/// The author, time and endpoint of a write.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// The version the request is made in, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written through.
    pub subresource: Option<&'a str>,
    /// Now, RFC 3339 in UTC with whole seconds; empty if no time is recorded.
    pub time: &'a str,
    /// Which fields the endpoint may own.
    pub scope: EndpointScope,
}

/// The fields that an endpoint may own. Fields that it would reset anyway are not owned through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointScope {
    /// The resource itself: all but the status, if that is written through its own endpoint.
    Main { has_status: bool },
    /// The status subresource: the status alone.
    Status,
    /// The status subresource of a kind whose metadata may be changed through it too, except for
    /// some fields.
    StatusAndMetadata(&'static [&'static str]),
    /// The scale subresource: the replicas.
    Scale,
    /// Any other subresource: whatever it changes.
    Other,
}

impl EndpointScope {
    pub(crate) fn keep(self, mut set: FieldSet) -> FieldSet {
        match self {
            Self::Main { has_status: true } => {
                set.take_field("status");
                set
            }
            Self::Status => only(&["status"], set),
            Self::Scale => only(&["spec"], set),
            Self::StatusAndMetadata(kept) => {
                let mut kept_out = FieldSet::default();
                for name in kept {
                    kept_out.insert(&[Element::field("metadata"), Element::field(name)]);
                }
                only(&["metadata", "status"], set).recursive_difference(&kept_out)
            }
            Self::Main { has_status: false } | Self::Other => set,
        }
    }
}

fn only(names: &[&str], mut set: FieldSet) -> FieldSet {
    let mut kept = FieldSet::default();
    for name in names {
        if let Some(field) = set.take_field(name) {
            kept.push(Element::field(name), field);
        }
    }
    kept
}

static UNTRACKED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::default();
    let metadata = Element::field("metadata");
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[Element::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[metadata.clone(), Element::field(name)]);
    }
    set
});

/// The paths without owners: what identifies the object, and what only the server writes.
pub(crate) fn untracked() -> &'static FieldSet {
    &UNTRACKED
}

/// Updates `metadata.managedFields` of `new` after a create (`live` is `None`), an update or a
/// patch that is not an apply.
///
/// The entries in `new` are those of the request. On the resource itself a valid list replaces the
/// stored one, and `[]` or `[{}]` resets it: from then on nothing is tracked until the next apply.
/// Absent or invalid entries are ignored in favour of the stored ones, so that a client that does
/// not know the field cannot damage it. The entries in a subresource's request are ignored.
pub fn track_update(schema: Schema<'_>, live: Option<&Value>, new: &mut Value, stamp: &Stamp<'_>) {
    let requested = take_managed_fields(new);
    let stored = live.map_or(&Value::Null, |live| &live["metadata"]["managedFields"]);
    let changes = changes(schema, live, new, stamp.scope);
    let managers = match known(requested, stored, stamp) {
        KnownEntries::Stored(echo)
            if changes.is_empty() && live.is_some() && !Managers::has_doubles(stored) =>
        {
            return put_managed_fields(new, echo.unwrap_or_else(|| stored.clone()));
        }
        KnownEntries::Stored(_) => Managers::decode(stored).unwrap_or_default(),
        KnownEntries::Requested(managers) => managers,
    };
    if live.is_some() && managers.is_empty() {
        return;
    }
    put_managed_fields(new, record(managers, changes, stamp).encode());
}

fn changes(
    schema: Schema<'_>,
    live: Option<&Value>,
    new: &Value,
    scope: EndpointScope,
) -> Comparison {
    compare(schema, live, new).map(|set| scope.keep(set.difference(untracked())))
}

/// The entries that an update starts from.
enum KnownEntries {
    /// The stored ones; with the request's own copy, if it sent the same back.
    Stored(Option<Value>),
    Requested(Managers),
}

fn known(requested: Option<Value>, stored: &Value, stamp: &Stamp<'_>) -> KnownEntries {
    let Some(requested) = requested else {
        return KnownEntries::Stored(None);
    };
    if requested == *stored {
        return KnownEntries::Stored(Some(requested));
    }
    if stamp.subresource.is_some() {
        return KnownEntries::Stored(None);
    }
    if is_reset(&requested) {
        return KnownEntries::Requested(Managers::default());
    }
    Managers::decode(&requested).map_or(KnownEntries::Stored(None), KnownEntries::Requested)
}

fn is_reset(requested: &Value) -> bool {
    match requested.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(Value::is_null),
        _ => false,
    }
}

fn record(mut managers: Managers, changes: Comparison, stamp: &Stamp<'_>) -> Managers {
    managers.give_up(&changes);
    let taken = changes.modified.union(changes.added);
    if !taken.is_empty() {
        managers.join(Entry::by(stamp, ManagerOperation::Update, taken));
    }
    managers.drop_empty();
    managers.cap();
    managers
}

/// Restores the stored `managedFields` if nothing but their times would change, so that a write
/// that changes nothing leaves the object byte for byte as it was. Entries are ordered by their
/// times, to the second: a write that moves one is a change, as in kube-apiserver.
///
/// For callers of apply, who change the object afterwards: only they can tell whether it is
/// unchanged.
pub fn keep_times(live: &Value, new: &mut Value) {
    if same_but_times(live, new) {
        put_managed_fields(new, live["metadata"]["managedFields"].clone());
    }
}

fn same_but_times(live: &Value, new: &Value) -> bool {
    let [a, b] = [live, new].map(|object| &object["metadata"]["managedFields"]);
    same_but_entries(live, new) && same_entries(a, b)
}

/// Whether the objects differ in their managed fields at most.
pub(crate) fn same_but_entries(live: &Value, new: &Value) -> bool {
    let fields = |a: &Value, b: &Value, without| match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => same_without(without, a, b),
        _ => a == b,
    };
    fields(live, new, "metadata") && fields(&live["metadata"], &new["metadata"], "managedFields")
}

/// Whether entries differ in nothing but times. A new time may have moved an entry, and the order
/// is stored.
fn same_entries(live: &Value, new: &Value) -> bool {
    let (Some(a), Some(b)) = (live.as_array(), new.as_array()) else {
        return live == new;
    };
    let same = |a: &Value, b: &Value| match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => same_without("time", a, b),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_without(name: &str, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let rest = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(name));
    rest(a) == rest(b) && a.iter().all(|(k, v)| k == name || b.get(k) == Some(v))
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("managedFields").filter(|v| !v.is_null())
}

pub(crate) fn put_managed_fields(object: &mut Value, entries: Value) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    let none = entries.as_array().is_none_or(Vec::is_empty);
    if none {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), entries);
    }
}
