//! A custom resource definition, parsed once and used on every request.

#[cfg(test)]
mod tests;

use std::{cmp::Ordering, sync::Arc};

use serde_json::Value;

pub use super::review::{default, validate, validate_name, validate_update};
use super::{
    cel::CompiledRules,
    compile::{Compiled, compile},
    default, embedded,
    path::JsonPath,
    prune, validate,
};
use crate::{
    schema::{Schema, go},
    status::{FieldError, FieldErrorKind, Problems},
};

/// A parsed definition.
#[derive(Debug, Clone)]
pub struct Definition {
    /// API group.
    pub group: String,
    /// The names of the resource.
    pub names: ResourceNames,
    /// Whether objects live in namespaces.
    pub scope: ResourceScope,
    /// In the order of the definition.
    pub versions: Vec<DefinitionVersion>,
    /// Unknown fields are kept in every version; only definitions older than v1 have this.
    pub preserve_unknown_fields: bool,
    /// Deleted, and waiting for its objects to be removed: it accepts no new ones.
    pub ending: bool,
}

/// The names of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceNames {
    /// `widgets`.
    pub plural: String,
    /// `widget`.
    pub singular: String,
    /// `Widget`.
    pub kind: String,
    /// `WidgetList`.
    pub list_kind: String,
    /// `wd`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
}

/// The scope of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceScope {
    /// In the cluster.
    Cluster,
    /// In namespaces.
    Namespaced,
}

/// One version of a custom resource. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct DefinitionVersion {
    /// `v1beta1`.
    pub name: String,
    /// Whether clients may use it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether its use is answered with a warning.
    pub deprecated: bool,
    /// The warning, if it is not the default one.
    pub deprecation_warning: Option<String>,
    /// The compiled schema.
    pub schema: Arc<Compiled>,
    /// The compiled rules.
    pub rules: Arc<CompiledRules>,
    /// Whether there is a status subresource.
    pub has_status: bool,
    /// The scale subresource, if there is one.
    pub scale: Option<ScaleSubresource>,
    /// What `kubectl get` prints besides the name.
    pub printer_columns: Vec<PrinterColumn>,
    /// Fields that field selectors may use.
    pub selectable_fields: Vec<JsonPath>,
    /// The schema as it was written, for publishing.
    pub open_api: Arc<Value>,
}

/// The paths of the scale subresource.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleSubresource {
    /// Such as `.spec.replicas`.
    pub spec_replicas: JsonPath,
    /// Such as `.status.replicas`.
    pub status_replicas: JsonPath,
    /// Such as `.status.selector`.
    pub label_selector: Option<JsonPath>,
}

impl ScaleSubresource {
    /// Checks that the numbers and the selector are those of a Scale, whatever the schema declares.
    fn validate(&self, object: &Value, problems: &mut Problems) {
        for path in [&self.spec_replicas, &self.status_replicas] {
            let most = i32::MAX.into();
            let source = path.source();
            match number(path, object) {
                Ok(Some(number)) if number < 0 => {
                    problems.invalid(source, number, "should be a non-negative integer");
                }
                Ok(Some(number)) if number > most => {
                    let detail = format!("should be less than or equal to {most}");
                    problems.invalid(source, number, detail);
                }
                Ok(_) => {}
                Err(why) => problems.invalid(source, 0, why),
            }
        }
        if let Some(path) = &self.label_selector
            && let Err(why) = text_at(path, object)
        {
            problems.invalid(path.source(), "", why);
        }
    }
}

/// The number at a path of fields, or an error if it is something else.
fn number(path: &JsonPath, object: &Value) -> Result<Option<i64>, String> {
    let Some(found) = nested(path, object)? else {
        return Ok(None);
    };
    let number = found.as_i64().map(Some);
    number.ok_or_else(|| unexpected(path.source(), found, "int64"))
}

/// The text at a path of fields, or an error if it is something else.
fn text_at<'v>(path: &JsonPath, object: &'v Value) -> Result<Option<&'v str>, String> {
    let Some(found) = nested(path, object)? else {
        return Ok(None);
    };
    let text = found.as_str().map(Some);
    text.ok_or_else(|| unexpected(path.source(), found, "string"))
}

/// The value at a path of fields. An absent parent has no fields; any other parent that is no
/// object is an error.
fn nested<'v>(path: &JsonPath, object: &'v Value) -> Result<Option<&'v Value>, String> {
    let mut found = object;
    let mut passed = String::new();
    for field in path.fields().unwrap_or_default() {
        passed.push('.');
        passed.push_str(field);
        let below = match found {
            Value::Null => None,
            Value::Object(fields) => fields.get(field),
            other => return Err(unexpected(&passed, other, "map[string]interface{}")),
        };
        let Some(below) = below else {
            return Ok(None);
        };
        found = below;
    }
    Ok(Some(found))
}

fn unexpected(path: &str, found: &Value, expected: &str) -> String {
    let (shown, ty) = go::shown(found);
    // Numbers beyond all integers are stored as floats.
    let ty = if found.is_u64() && !found.is_i64() {
        "float64"
    } else {
        ty
    };
    format!("{path} accessor error: {shown} is of the type {ty}, expected {expected}")
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// Refines the type.
    pub format: String,
    pub description: String,
    /// Above zero: only in wide output.
    pub priority: i64,
    /// The path of the value.
    pub path: JsonPath,
}

impl Definition {
    /// Parses an accepted definition; unreadable parts are left out.
    pub fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let preserve = spec["preserveUnknownFields"] == true;
        Self {
            group: text(&spec["group"]),
            names: read_names(&spec["names"]),
            scope: if spec["scope"] == "Namespaced" {
                ResourceScope::Namespaced
            } else {
                ResourceScope::Cluster
            },
            versions: list(&spec["versions"])
                .iter()
                .map(|version| DefinitionVersion::read(version, preserve))
                .collect(),
            preserve_unknown_fields: preserve,
            ending: object["metadata"]["deletionTimestamp"].is_string(),
        }
    }

    /// The version called `name`.
    pub fn version(&self, name: &str) -> Option<&DefinitionVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version objects are stored in.
    pub fn storage(&self) -> Option<&DefinitionVersion> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The served versions, the most preferred first: `v2`, `v1`, `v1beta2`, `v1alpha1`, `other`.
    pub fn served(&self) -> Vec<&DefinitionVersion> {
        let mut served: Vec<&DefinitionVersion> =
            self.versions.iter().filter(|v| v.served).collect();
        served.sort_by(|a, b| prefer(&a.name, &b.name));
        served
    }

    /// The text of the `Warning` header for requests in a deprecated version.
    pub fn deprecation(&self, version: &DefinitionVersion) -> Option<String> {
        version.deprecated.then(|| {
            version.deprecation_warning.clone().unwrap_or_else(|| {
                let (group, kind) = (&self.group, &self.names.kind);
                let text = format!("{group}/{} {kind} is deprecated", version.name);
                match self.successor(version) {
                    Some(newer) => format!("{text}; use {group}/{newer} {kind}"),
                    None => text,
                }
            })
        })
    }

    /// The most preferred version that is served, not deprecated and newer than this one.
    fn successor(&self, old: &DefinitionVersion) -> Option<&str> {
        let mut served = self.served().into_iter();
        let newer = served.find(|other| !other.deprecated)?;
        prefer(&newer.name, &old.name)
            .is_lt()
            .then_some(&newer.name)
    }

    /// Converts an object to another version: without a conversion webhook, only apiVersion
    /// changes.
    pub fn convert(&self, object: &mut Value, version: &str) {
        if let Some(fields) = object.as_object_mut() {
            let text = format!("{}/{version}", self.group);
            fields.insert("apiVersion".into(), text.into());
        }
    }
}

impl DefinitionVersion {
    fn read(version: &Value, preserve: bool) -> Self {
        let open_api = &version["schema"]["openAPIV3Schema"];
        let schema = compile(open_api, preserve);
        // Rules were reviewed when the definition was created; one that no longer compiles is
        // skipped.
        let rules = CompiledRules::compile(schema.root(), "", &mut Problems::new());
        Self {
            name: text(&version["name"]),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecated: version["deprecated"] == true,
            deprecation_warning: version["deprecationWarning"].as_str().map(Into::into),
            schema: schema.into(),
            rules: rules.into(),
            has_status: version["subresources"].get("status").is_some(),
            scale: read_scale(&version["subresources"]["scale"]),
            printer_columns: list(&version["additionalPrinterColumns"])
                .iter()
                .filter_map(read_column)
                .collect(),
            selectable_fields: list(&version["selectableFields"])
                .iter()
                .filter_map(|field| path(&field["jsonPath"]))
                .collect(),
            open_api: Arc::new(open_api.clone()),
        }
    }

    /// The schema of a whole object.
    pub fn root(&self) -> Schema<'_> {
        self.schema.root()
    }

    /// Removes unknown fields and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Normalizes what a client sent: null is absence, and embedded objects have metadata. Returns
    /// the paths of unknown fields in that metadata.
    pub fn take_in(&self, object: &mut Value) -> Result<Vec<String>, String> {
        default::drop_nulls(self.root(), object);
        embedded::read(self.root(), object)
    }

    /// Normalizes the embedded objects of an applied object, as far as they can be read.
    pub fn read_embedded(&self, object: &mut Value) {
        // The schema validation reports what cannot be read.
        let _ = embedded::read(self.root(), object);
    }

    /// The embedded objects of an object, with their paths.
    pub fn embedded<'v>(&self, object: &'v Value) -> Vec<(String, &'v Value)> {
        embedded::find(self.root(), object)
    }

    /// Fills absent fields.
    pub fn default(&self, object: &mut Value) {
        default::default(self.root(), object);
    }

    /// Validates an object, pruned and defaulted, against the schema and then the rules. Rules need
    /// an object that is valid by its schema; otherwise a problem says they were not run.
    pub fn validate(&self, new: &Value, old: Option<&Value>, problems: &mut Problems) {
        validate::validate(self.root(), new, old, problems);
        if let Some(scale) = &self.scale {
            scale.validate(new, problems);
        }
        self.check_rules(new, old, problems);
    }

    /// As [`Self::validate`], for an object that declares another kind: of the schema only the
    /// uniqueness of items is checked, and that embedded objects have apiVersion and kind.
    pub fn validate_foreign(&self, new: &Value, old: Option<&Value>, problems: &mut Problems) {
        validate::validate_embedded(&self.embedded(new), problems);
        validate::validate_unique(self.root(), new, old, problems);
        self.check_rules(new, old, problems);
    }

    /// Runs the rules, unless a problem keeps them from running.
    fn check_rules(&self, new: &Value, old: Option<&Value>, problems: &mut Problems) {
        // Rules can read values that are merely invalid, but not values that are missing, of
        // another type or too many.
        let blocks = |error: &FieldError| {
            matches!(
                error.kind,
                FieldErrorKind::Required
                    | FieldErrorKind::TypeInvalid
                    | FieldErrorKind::NotSupported
                    | FieldErrorKind::TooLong
                    | FieldErrorKind::TooMany
            )
        };
        if !problems.iter().any(blocks) {
            self.rules.check(self.root(), new, old, problems);
        } else if !self.rules.is_empty() {
            problems.push(FieldError {
                kind: FieldErrorKind::Invalid,
                path: "<nil>".into(),
                value: Some(Value::Null),
                detail: "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".into(),
            });
        }
    }
}

fn read_names(names: &Value) -> ResourceNames {
    let strings = |name: &str| list(&names[name]).iter().map(text).collect();
    ResourceNames {
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        short_names: strings("shortNames"),
        categories: strings("categories"),
    }
}

fn read_scale(scale: &Value) -> Option<ScaleSubresource> {
    Some(ScaleSubresource {
        spec_replicas: path(&scale["specReplicasPath"])?,
        status_replicas: path(&scale["statusReplicasPath"])?,
        label_selector: path(&scale["labelSelectorPath"]),
    })
}

fn read_column(column: &Value) -> Option<PrinterColumn> {
    Some(PrinterColumn {
        name: text(&column["name"]),
        ty: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or(0),
        path: path(&column["jsonPath"])?,
    })
}

fn path(value: &Value) -> Option<JsonPath> {
    JsonPath::parse(value.as_str().filter(|text| !text.is_empty())?).ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Stable before beta before alpha, newer before older, and names of other forms last, by name.
fn prefer(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn rank(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    for (word, stage) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, major.parse().ok()?, minor.parse().ok()?));
        }
    }
    Some((2, rest.parse().ok()?, 0))
}
