//! Normalization, defaulting and validation of a kind's objects, built-in or custom.

use std::collections::HashSet;

use serde_json::Value;

use super::{SchemaSource, Served};
use crate::{
    kinds::{check, metadata},
    schema::{conform, whole_numbers},
    status::{Problems, Result},
};

/// Up to 2^53, where a float represents every integer, whole numbers of custom objects are stored
/// without a fraction.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl Served {
    /// Normalizes a value to this version. Returns the fields that were dropped.
    pub fn conform(&self, value: &mut Value) -> Result<Vec<String>> {
        match &self.shape {
            SchemaSource::BuiltIn { schema, .. } => {
                let conformed =
                    conform::conform(*schema, value, &self.resource.kind, &self.api_version)?;
                Ok(conformed.unknown)
            }
            SchemaSource::Custom { .. } => self
                .read_custom(value)
                .map_err(|why| conform::unreadable(&self.resource.kind, &self.api_version, &why)),
        }
    }

    /// As [`Self::conform`], for an object that a patch has made: errors are those of the patch.
    pub fn conform_patched(&self, value: &mut Value) -> Result<Vec<String>> {
        match &self.shape {
            SchemaSource::BuiltIn { schema, .. } => {
                let conformed = conform::conform_patched(*schema, value, &self.resource.kind)?;
                Ok(conformed.unknown)
            }
            SchemaSource::Custom { .. } => self
                .read_custom(value)
                .map_err(|why| conform::unreadable_patch(&why)),
        }
    }

    /// As [`Self::conform`], with the messages for an object that was merged from typed parts.
    pub fn conform_merged(&self, value: &mut Value) -> Result<Vec<String>, String> {
        match &self.shape {
            SchemaSource::BuiltIn { schema, .. } => {
                let conformed = conform::conform_merged(*schema, value, &self.resource.kind)?;
                Ok(conformed.unknown)
            }
            SchemaSource::Custom { .. } => self.conform_custom(value),
        }
    }

    fn conform_custom(&self, value: &mut Value) -> Result<Vec<String>, String> {
        let SchemaSource::Custom {
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

    /// Normalizes a whole custom object. Of one that declares another kind only the metadata is
    /// known.
    fn read_custom(&self, value: &mut Value) -> Result<Vec<String>, String> {
        if self.is_foreign(value) {
            return conform_metadata(value);
        }
        let mut dropped = conform_metadata(value)?;
        if let SchemaSource::Custom {
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

    /// Whether a custom object declares another kind.
    pub fn is_foreign(&self, value: &Value) -> bool {
        let version = value["apiVersion"].as_str().unwrap_or_default();
        let (group, _) = version.rsplit_once('/').unwrap_or_default();
        self.is_custom()
            && (value["kind"] != self.resource.kind.as_str() || group != self.resource.group)
    }

    /// Normalizes numbers of a custom object to their stored form, once `2.0` and `2` need not be
    /// told apart any more.
    pub fn settle_numbers(&self, value: &mut Value) {
        if self.is_custom() {
            whole_numbers(value, MAX_EXACT_INTEGER);
        }
    }

    /// Reads an applied custom object as kube-apiserver does, which has no type for it: an invalid
    /// time is null, and whole numbers are integers. Returns why the object cannot be converted to
    /// the stored version, which is reported after all other errors.
    pub fn read_applied(&self, config: &mut Value) -> Option<String> {
        if !self.is_custom() {
            return None;
        }
        whole_numbers(config, MAX_EXACT_INTEGER);
        let metadata = config.get_mut("metadata").and_then(Value::as_object_mut)?;
        let mut unstorable = None;
        for field in ["creationTimestamp", "deletionTimestamp"] {
            let text = metadata.get(field).and_then(Value::as_str);
            if text.is_some_and(|text| crate::crd::validate::date_time(text).is_none()) {
                let time = metadata.insert(field.into(), Value::Null);
                // The server sets the creation time itself.
                if field == "deletionTimestamp" && !self.is_storage() {
                    let mut metadata = serde_json::json!({field: time});
                    unstorable = conform::conform_object_meta(&mut metadata).err();
                }
            }
        }
        unstorable
    }

    /// Fills defaults. A custom object uses the schema of the version it is sent in; nothing is
    /// known of one that declares another kind.
    pub fn default(&self, value: &mut Value) {
        match &self.shape {
            SchemaSource::Custom { .. } if self.is_foreign(value) => {}
            SchemaSource::BuiltIn { .. } => (self.rules.default)(value),
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => definition.versions[*version].default(value),
        }
    }

    /// Drops fields that the storage version does not have.
    pub fn fit(&self, value: &mut Value) {
        if let SchemaSource::Custom {
            definition, stored, ..
        } = &self.shape
            && !self.is_storage()
        {
            definition.versions[*stored].prune(value);
        }
    }

    /// Validates a change in the form of an API that is stored as another. Both are as stored.
    pub fn check_alias_change(&self, new: &Value, old: &Value, problems: &mut Problems) {
        if let SchemaSource::BuiltIn {
            alias: Some(alias), ..
        } = &self.shape
        {
            let shown = |value: &Value| (alias.show)(value.clone());
            (alias.rules.validate_update)(&shown(new), &shown(old), problems);
        }
    }

    /// Validates a new object in the form of an API that is stored as another.
    pub fn check_alias(&self, value: &mut Value) -> Result<()> {
        let SchemaSource::BuiltIn {
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

    /// Drops the status of a new custom object.
    pub fn drop_status(&self, value: &mut Value) {
        if self.is_custom()
            && self.has_status()
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("status");
        }
    }

    /// Validates a new object, or a change of an old one.
    pub fn validate(&self, new: &Value, old: Option<&Value>, problems: &mut Problems) {
        let namespaced = self.resource.namespaced;
        match (&self.shape, old) {
            (SchemaSource::BuiltIn { stored, .. }, None) => {
                check::validate_object(&self.rules, *stored, namespaced, new, problems);
            }
            (SchemaSource::BuiltIn { stored, .. }, Some(old)) => {
                check::validate_change(&self.rules, *stored, namespaced, (new, old), problems);
            }
            (
                SchemaSource::Custom {
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

    /// The warnings of a write. For a custom object, only about what this write changed; for a
    /// built-in one, none if the write left the spec as it was.
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
            let known: HashSet<String> = (self.rules.warnings)(old).into_iter().collect();
            told.retain(|text| !known.contains(text));
        }
        told
    }

    /// Validates a change of status alone.
    pub fn validate_status(&self, new: &Value, old: &Value, problems: &mut Problems) {
        match &self.shape {
            SchemaSource::BuiltIn { .. } => {
                self.validate_changed_metadata(new, old, problems);
                metadata::validate_finalizer_domains(new, problems);
                (self.rules.validate_status)(new, old, problems);
            }
            SchemaSource::Custom { .. } => {
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

    /// Marks an object that is deleted and cannot be removed at once.
    pub fn begin_removal(&self, value: &mut Value, now: &str) {
        self.role.begin_removal(value, now);
    }

    /// Removes the deadline of a delete for kinds without one.
    pub fn without_grace(&self, new: &mut Value, old: &Value) {
        self.role.without_grace(new, old);
    }

    /// Whether no kind-specific finalizer keeps a deleted object.
    pub fn nothing_left(&self, value: &Value) -> bool {
        self.role.nothing_left(value)
    }
}

/// Normalizes the metadata of a custom object, as for any other.
fn conform_metadata(value: &mut Value) -> Result<Vec<String>, String> {
    let metadata = value.get_mut("metadata").filter(|value| !value.is_null());
    let Some(metadata) = metadata else {
        return Ok(Vec::new());
    };
    let conformed = conform::conform_object_meta(metadata)?;
    let inside = |path: String| format!("metadata.{path}");
    Ok(conformed.unknown.into_iter().map(inside).collect())
}
