//! The entries of `metadata.managedFields`: parsing, writing, their order and their number.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{Comparison, FieldSet, InvalidFieldsV1, Stamp};

/// Update entries of one object, at most; more are merged, oldest first.
const MAX_UPDATE_ENTRIES: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// The operation by which a manager owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagerOperation {
    /// By server-side apply.
    Apply,
    /// By create, update or another patch.
    Update,
}

impl ManagerOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The manager's name.
    pub manager: String,
    pub operation: ManagerOperation,
    /// The version of the field names.
    pub api_version: String,
    /// The subresource it wrote through; empty for the resource itself.
    pub subresource: String,
    /// When it last changed its fields, RFC 3339 in UTC.
    pub time: Option<String>,
    pub fields: FieldSet,
}

/// Why `metadata.managedFields` is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// It is not a list of objects.
    #[error("managed fields must be a list of entries")]
    NotEntries,
    /// An entry has an unknown operation.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry has no apiVersion.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry's fields are of an unknown type.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, String),
    /// An entry's fields are malformed.
    #[error("cannot decode the fields of managed fields entry {0}")]
    Fields(usize, #[source] InvalidFieldsV1),
}

/// All entries of one object; each combination of manager, operation, version and subresource once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Managers(Vec<Entry>);

impl Managers {
    /// Parses the value of `metadata.managedFields`; null is no entries.
    pub fn decode(value: &Value) -> Result<Self, InvalidEntry> {
        let mut managers = Self::default();
        let entries = match value {
            Value::Null => return Ok(managers),
            Value::Array(entries) => entries,
            _ => return Err(InvalidEntry::NotEntries),
        };
        for (at, entry) in entries.iter().enumerate() {
            managers.0.push(Entry::decode(at, entry)?);
        }
        // As in a map, the last of two entries of one owner wins.
        let mut owners = HashSet::with_capacity(managers.0.len());
        let last: Vec<bool> = managers
            .0
            .iter()
            .rev()
            .map(|e| owners.insert(e.owner()))
            .collect();
        let mut last = last.into_iter().rev();
        managers.0.retain(|_| last.next().unwrap_or_default());
        Ok(managers)
    }

    /// The entries of `object`.
    pub fn of(object: &Value) -> Result<Self, InvalidEntry> {
        Self::decode(&object["metadata"]["managedFields"])
    }

    /// The value of `metadata.managedFields`: Apply before Update, then by time, manager, version
    /// and subresource.
    pub fn encode(mut self) -> Value {
        self.0.sort_by(|a, b| a.order().cmp(&b.order()));
        self.0.into_iter().map(Entry::encode).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an owner has two entries, as after a write through a Scale; the next write drops the
    /// first.
    pub(super) fn has_doubles(entries: &Value) -> bool {
        let untimed = |entry: &Value| entry.get("time").is_none();
        let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
        entries.iter().any(untimed)
            && Self::decode(&Value::Array(entries.to_vec()))
                .is_ok_and(|known| known.0.len() < entries.len())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// Removes from every entry the fields that another manager changed or removed.
    pub(crate) fn give_up(&mut self, changes: &Comparison) {
        self.give_up_in(|_| true, changes);
    }

    /// As [`Self::give_up`], for entries of the selected versions. True if they lost anything.
    pub(crate) fn give_up_in(
        &mut self,
        version: impl Fn(&str) -> bool,
        changes: &Comparison,
    ) -> bool {
        let mut lost = false;
        for entry in self.0.iter_mut().filter(|e| version(&e.api_version)) {
            let fields = std::mem::take(&mut entry.fields);
            let before = fields.clone();
            entry.fields = fields
                .difference(&changes.modified)
                .difference(&changes.added)
                .difference(&changes.removed);
            lost |= entry.fields != before;
        }
        lost
    }

    /// Every owned path.
    pub fn all(&self) -> FieldSet {
        FieldSet::union_all(self.0.iter().map(|entry| entry.fields.clone()).collect())
    }

    /// Removes the entry of the same owner.
    pub(crate) fn take(&mut self, owner: &Entry) -> Option<Entry> {
        let at = self.0.iter().position(|entry| entry.same_owner(owner))?;
        Some(self.0.remove(at))
    }

    /// Adds an entry, merging it with one of the same owner.
    pub(crate) fn join(&mut self, mut entry: Entry) -> &Entry {
        if let Some(previous) = self.take(&entry) {
            entry.fields = entry.fields.union(previous.fields);
        }
        self.0.push_mut(entry)
    }

    /// Removes entries without fields.
    pub(crate) fn drop_empty(&mut self) {
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Merges the oldest Update entries of one version into one, until there are few enough.
    pub(crate) fn cap(&mut self) {
        let count = self.updaters().count();
        let Some(mut surplus) = count.checked_sub(MAX_UPDATE_ENTRIES).filter(|n| *n > 0) else {
            return;
        };
        let (updaters, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition::<Vec<_>, _>(|entry| entry.operation == ManagerOperation::Update);
        self.0 = others;
        let mut oldest = updaters;
        oldest.sort_by(|a, b| a.order().cmp(&b.order()));
        // The entries of each version that are merged; the rest stay.
        let mut first: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        let mut rest = Vec::new();
        for entry in oldest {
            if surplus == 0 {
                rest.push(entry);
                continue;
            }
            let merged = first.entry(entry.api_version.clone()).or_default();
            surplus -= usize::from(!merged.is_empty());
            merged.push(entry);
        }
        self.0.extend(rest);
        for mut merged in first.into_values() {
            let Some(last) = merged.pop() else { continue };
            if merged.is_empty() {
                self.0.push(last);
                continue;
            }
            let mut sets: Vec<FieldSet> = merged.into_iter().map(|entry| entry.fields).collect();
            sets.push(last.fields);
            self.join(Entry {
                manager: ANCIENT.into(),
                subresource: String::new(),
                fields: FieldSet::union_all(sets),
                ..last
            });
        }
    }

    fn updaters(&self) -> impl Iterator<Item = &Entry> {
        let update = |entry: &&Entry| entry.operation == ManagerOperation::Update;
        self.0.iter().filter(update)
    }
}

impl FromIterator<Entry> for Managers {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Entry {
    /// The entry for a write with this stamp.
    pub(crate) fn by(stamp: &Stamp<'_>, operation: ManagerOperation, fields: FieldSet) -> Self {
        Self {
            manager: stamp.manager.into(),
            operation,
            api_version: stamp.api_version.into(),
            subresource: stamp.subresource.unwrap_or_default().into(),
            time: (!stamp.time.is_empty()).then(|| stamp.time.into()),
            fields,
        }
    }

    /// Whether two entries have the same owner. The version of an Apply entry does not count.
    pub(crate) fn same_owner(&self, other: &Self) -> bool {
        self.owner() == other.owner()
    }

    /// What entries of one owner have in common.
    pub(super) fn owner(&self) -> (&str, ManagerOperation, &str, &str) {
        let version = match self.operation {
            ManagerOperation::Apply => "",
            ManagerOperation::Update => &self.api_version,
        };
        (&self.manager, self.operation, &self.subresource, version)
    }

    fn order(&self) -> (ManagerOperation, Option<&str>, &str, &str, &str) {
        (
            self.operation,
            self.time.as_deref(),
            &self.manager,
            &self.api_version,
            &self.subresource,
        )
    }

    fn decode(at: usize, entry: &Value) -> Result<Self, InvalidEntry> {
        let entry = entry.as_object().ok_or(InvalidEntry::NotEntries)?;
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => ManagerOperation::Apply,
            "Update" => ManagerOperation::Update,
            _ => return Err(InvalidEntry::Operation),
        };
        if text("apiVersion").is_empty() {
            return Err(InvalidEntry::ApiVersion);
        }
        let fields_type = text("fieldsType");
        if fields_type != "FieldsV1" {
            return Err(InvalidEntry::FieldsType(at, fields_type.into()));
        }
        let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
        Ok(Self {
            manager: text("manager").into(),
            operation,
            api_version: text("apiVersion").into(),
            subresource: text("subresource").into(),
            time: entry.get("time").and_then(Value::as_str).map(Into::into),
            fields: FieldSet::from_fields_v1(fields).map_err(|e| InvalidEntry::Fields(at, e))?,
        })
    }

    fn encode(self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.into(), value);
        put("apiVersion", self.api_version.into());
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", self.fields.into_fields_v1());
        if !self.manager.is_empty() {
            put("manager", self.manager.into());
        }
        put("operation", self.operation.as_str().into());
        if !self.subresource.is_empty() {
            put("subresource", self.subresource.into());
        }
        if let Some(time) = self.time {
            put("time", time.into());
        }
        Value::Object(entry)
    }
}
