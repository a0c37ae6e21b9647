//! What a kind demands of its objects, built-in or custom.

use serde_json::Value;

use super::{Served, Shape};
use crate::{
    kinds::{check, metadata},
    schema::{conform, whole_numbers},
    status::{Problems, Result},
};

/// Custom objects have whole numbers without a fraction as long as a float tells each from the
/// next: up to 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Served {
    /// Brings a value into the shape of this version. Returns the fields that were dropped.
    pub fn conform(&self, value: &mut Value) -> Result<Vec<String>> {
        match &self.shape {
            Shape::BuiltIn { schema, .. } => {
                let conformed =
                    conform::conform(*schema, value, &self.resource.kind, &self.api_version)?;
                Ok(conformed.unknown)
            }
            Shape::Custom { .. } => self
                .read_custom(value)
                .map_err(|why| conform::unreadable(&self.resource.kind, &self.api_version, &why)),
        }
    }

    /// As [`Self::conform`], for an object that a patch has made: a mismatch is the patch's fault.
    pub fn conform_patched(&self, value: &mut Value) -> Result<Vec<String>> {
        match &self.shape {
            Shape::BuiltIn { schema, .. } => {
                let conformed = conform::conform_patched(*schema, value, &self.resource.kind)?;
                Ok(conformed.unknown)
            }
            Shape::Custom { .. } => self
                .read_custom(value)
                .map_err(|why| conform::unreadable_patch(&why)),
        }
    }

    /// As [`Self::conform`], in the words for an object that was merged from typed parts.
    pub fn conform_merged(&self, value: &mut Value) -> Result<Vec<String>, String> {
        match &self.shape {
            Shape::BuiltIn { schema, .. } => {
                let conformed = conform::conform_merged(*schema, value, &self.resource.kind)?;
                Ok(conformed.unknown)
            }
            Shape::Custom { .. } => self.conform_custom(value),
        }
    }

    fn conform_custom(&self, value: &mut Value) -> Result<Vec<String>, String> {
        let Shape::Custom {
            definition,
            version,
            ..
        } = &self.shape
        else {
            return Ok(Vec::new());
        };
        let version = &definition.versions[*version];
        let mut dropped = conform_metadata(value)?;
        dropped.extend(version.prune(value));
        version.read_embedded(value);
        Ok(dropped)
    }

    /// As a custom object is read whole. Of one that calls itself another kind only the metadata
    /// is known.
    fn read_custom(&self, value: &mut Value) -> Result<Vec<String>, String> {
        if self.is_foreign(value) {
            return conform_metadata(value);
        }
        let mut dropped = conform_metadata(value)?;
        if let Shape::Custom {
            definition,
            version,
            ..
        } = &self.shape
        {
            let version = &definition.versions[*version];
            let unknown = version.take_in(value)?;
            dropped.extend(version.prune(value));
            dropped.extend(unknown);
        }
        Ok(dropped)
    }

    /// Whether a custom object calls itself another kind.
    pub fn is_foreign(&self, value: &Value) -> bool {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        let (group, _) = version.rsplit_once('/').unwrap_or_default();
        self.is_custom()
            && (value["kind"] != self.resource.kind.as_str() || group != self.resource.group)
    }

    /// Writes numbers of a custom object as they are stored, once nobody tells `2.0` from `2` any
    /// more.
    pub fn settle_numbers(&self, value: &mut Value) {
        if self.is_custom() {
            whole_numbers(value, EXACT);
        }
    }

    /// Reads what is applied to a custom object as the reference does, which has no type for it: a
    /// time that is none is null, and numbers are what they count. Returns why the object cannot be
    /// converted to the stored version, which is found when everything else was.
    pub fn read_applied(&self, config: &mut Value) -> Option<String> {
        if !self.is_custom() {
            return None;
        }
        whole_numbers(config, EXACT);
        let metadata = config.get_mut("metadata").and_then(Value::as_object_mut)?;
        let mut unstorable = None;
        for field in ["creationTimestamp", "deletionTimestamp"] {
            let text = metadata.get(field).and_then(Value::as_str);
            if text.is_some_and(|text| crate::crd::validate::date_time(text).is_none()) {
                let time = metadata.insert(field.into(), Value::Null);
                // The time of creation is the server's own.
                if field == "deletionTimestamp" && !self.is_storage() {
                    let mut metadata = serde_json::json!({field: time});
                    unstorable = conform::conform_object_meta(&mut metadata).err();
                }
            }
        }
        unstorable
    }

    /// Fills what was left out. A custom object keeps the schema of the version it is sent in, and
    /// nothing is known of one that calls itself another kind.
    pub fn default(&self, value: &mut Value) {
        match &self.shape {
            Shape::Custom { .. } if self.is_foreign(value) => {}
            Shape::BuiltIn { .. } => (self.rules.default)(value),
            Shape::Custom {
                definition,
                version,
                ..
            } => definition.versions[*version].default(value),
        }
    }

    /// Drops what the version that is stored has no room for.
    pub fn fit(&self, value: &mut Value) {
        if let Shape::Custom {
            definition, stored, ..
        } = &self.shape
            && !self.is_storage()
        {
            definition.versions[*stored].prune(value);
        }
    }

    /// Rules on a change in the form of an API that is stored as another. Both are as stored.
    pub fn check_alias_change(&self, new: &Value, old: &Value, problems: &mut Problems) {
        if let Shape::BuiltIn {
            alias: Some(alias), ..
        } = &self.shape
        {
            let shown = |value: &Value| (alias.show)(value.clone());
            (alias.rules.validate_update)(&shown(new), &shown(old), problems);
        }
    }

    /// Rules on a new object in the form of an API that is stored as another.
    pub fn check_alias(&self, value: &mut Value) -> Result<()> {
        let Shape::BuiltIn {
            alias: Some(alias), ..
        } = &self.shape
        else {
            return Ok(());
        };
        (alias.rules.default)(value);
        let mut problems = Problems::new();
        (alias.rules.validate)(value, &mut problems);
        self.refuse(
            value["metadata"]["name"].as_str().unwrap_or_default(),
            &problems,
        )
    }

    /// A new custom object has no status, whatever was sent.
    pub fn drop_status(&self, value: &mut Value) {
        if self.is_custom()
            && self.has_status()
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("status");
        }
    }

    /// Rules on a new object, or on a change of an old one.
    pub fn validate(&self, new: &Value, old: Option<&Value>, problems: &mut Problems) {
        let namespaced = self.resource.namespaced;
        match (&self.shape, old) {
            (Shape::BuiltIn { stored, .. }, None) => {
                check::validate_object(&self.rules, *stored, namespaced, new, problems);
            }
            (Shape::BuiltIn { stored, .. }, Some(old)) => {
                check::validate_change(&self.rules, *stored, namespaced, (new, old), problems);
            }
            (
                Shape::Custom {
                    definition,
                    version,
                    ..
                },
                _,
            ) => {
                if self.is_foreign(new) {
                    let shown = new["kind"].as_str().unwrap_or_default();
                    problems.invalid("kind", shown, format!("must be {}", self.resource.kind));
                }
                let version = &definition.versions[*version];
                for (at, inside) in version.embedded(new) {
                    metadata::validate_embedded(inside, &at, problems);
                }
                if self.is_foreign(new) {
                    return version.validate_foreign(new, old, problems);
                }
                match old {
                    None => {
                        metadata::validate_metadata(new, self.traits().name, namespaced, problems);
                    }
                    Some(old) => self.validate_changed_metadata(new, old, problems),
                }
                version.validate(new, old, problems);
            }
        }
    }

    /// What the writer is told beside the answer. Of a custom object, only what this write brought;
    /// of a built-in one, nothing if the write left what it asks for as it was.
    pub fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let Some(old) = old else {
            let mut told = (self.rules.first_warnings)(new);
            told.extend((self.rules.warnings)(new));
            return told;
        };
        let generation = |object: &Value| object["metadata"]["generation"].clone();
        if self.traits().generation && !self.is_custom() && generation(new) == generation(old) {
            return Vec::new();
        }
        let mut told = (self.rules.warnings)(new);
        if self.is_custom() && !told.is_empty() {
            let known = (self.rules.warnings)(old);
            told.retain(|text| !known.contains(text));
        }
        told
    }

    /// Rules on a change of status alone.
    pub fn validate_status(&self, new: &Value, old: &Value, problems: &mut Problems) {
        match &self.shape {
            Shape::BuiltIn { .. } => {
                self.validate_changed_metadata(new, old, problems);
                metadata::validate_finalizer_domains(new, problems);
                (self.rules.validate_status)(new, old, problems);
            }
            Shape::Custom { .. } => {
                let mut found = Problems::new();
                self.validate(new, Some(old), &mut found);
                for error in &found {
                    // Here the status is the body.
                    let mut error = error.clone();
                    let inside = error.detail.strip_prefix("status");
                    if let Some(inside) = inside.filter(|rest| rest.starts_with(['.', ' '])) {
                        error.detail = inside.trim_start_matches('.').into();
                    }
                    problems.push(error);
                }
            }
        }
    }

    fn validate_changed_metadata(&self, new: &Value, old: &Value, problems: &mut Problems) {
        let namespaced = self.resource.namespaced;
        metadata::validate_changed_metadata(new, old, namespaced, problems);
        metadata::validate_metadata_update(new, old, problems);
    }

    /// What a delete changes on an object that cannot go at once.
    pub fn begin_removal(&self, value: &mut Value, now: &str) {
        self.role.begin_removal(value, now);
    }

    /// Takes back the deadline of a delete where there is no such thing.
    pub fn without_grace(&self, new: &mut Value, old: &Value) {
        self.role.without_grace(new, old);
    }

    /// Whether nothing of the kind's own keeps a deleted object.
    pub fn nothing_left(&self, value: &Value) -> bool {
        self.role.nothing_left(value)
    }
}

/// The metadata of a custom object is held as that of any other.
fn conform_metadata(value: &mut Value) -> Result<Vec<String>, String> {
    let metadata = value.get_mut("metadata").filter(|value| !value.is_null());
    let Some(metadata) = metadata else {
        return Ok(Vec::new());
    };
    let conformed = conform::conform_object_meta(metadata)?;
    let inside = |path: String| format!("metadata.{path}");
    Ok(conformed.unknown.into_iter().map(inside).collect())
}
