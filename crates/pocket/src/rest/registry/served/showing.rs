//! Objects as clients see them: in the requested version, whole or as rows.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::{SchemaSource, Served};
use crate::{
    crd,
    kinds::{field_value, has_field_label, has_own_labels, scale},
    selector::FieldSelector,
    status::ApiError,
    store::Object,
    table::{self, Printer},
};

impl Served {
    /// The object in this version.
    pub fn value(&self, object: &Object) -> Value {
        self.converted(object.value())
    }

    /// The bytes of the object in this version; mostly those that are stored.
    pub fn shown(&self, object: &Object) -> Bytes {
        if self.shows_stored_bytes() {
            return object.json().clone();
        }
        self.converted(object.value()).to_string().into()
    }

    /// The bytes of the object for reads and writes of the whole object.
    pub fn shown_whole(&self, object: &Object) -> Bytes {
        match self.veiled(object) {
            Some(value) => value.to_string().into(),
            None => self.shown(object),
        }
    }

    /// The object without the fields its kind hides, if it may have any.
    fn veiled(&self, object: &Object) -> Option<Value> {
        let veil = self.rules.veil?;
        memchr::memmem::find(object.json(), veil.mark.as_bytes())?;
        let mut value = self.value(object);
        (veil.hide)(&mut value);
        Some(value)
    }

    /// Appends an item of a list: built-in lists leave out apiVersion and kind, which the list has.
    pub fn put_item(&self, object: &Object, out: &mut BytesMut) {
        if self.is_custom() {
            out.put_slice(&self.shown(object));
            return;
        }
        let alias = || self.is_alias().then(|| self.value(object));
        if let Some(mut value) = self.veiled(object).or_else(alias) {
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|field, _| field != "kind" && field != "apiVersion");
            }
            out.put_slice(value.to_string().as_bytes());
            return;
        }
        out.put_u8(b'{');
        out.put_slice(object.body());
    }

    /// Whether stored bytes can be shown as they are: no defaults of a later definition, and no
    /// other version.
    fn shows_stored_bytes(&self) -> bool {
        match &self.shape {
            SchemaSource::BuiltIn { alias, .. } => alias.is_none(),
            SchemaSource::Custom { has_defaults, .. } => self.is_storage() && !has_defaults,
        }
    }

    /// A stored value in this version.
    pub fn converted(&self, mut value: Value) -> Value {
        match &self.shape {
            SchemaSource::BuiltIn { alias: None, .. } => value,
            SchemaSource::BuiltIn {
                alias: Some(alias), ..
            } => (alias.show)(value),
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => {
                value["apiVersion"] = json!(self.api_version);
                definition.versions[*version].default(&mut value);
                value
            }
        }
    }

    /// Converts a value of this version, in place, to the storage version.
    pub fn to_storage(&self, value: &mut Value) {
        match &self.shape {
            SchemaSource::BuiltIn {
                alias: Some(alias), ..
            } => *value = (alias.store)(std::mem::take(value)),
            SchemaSource::BuiltIn { alias: None, .. } => {}
            SchemaSource::Custom { .. } => value["apiVersion"] = json!(self.resource.storage),
        }
    }

    /// The inverse of [`Self::to_storage`].
    pub fn from_storage(&self, value: &mut Value) {
        *value = self.converted(std::mem::take(value));
    }

    /// The error for an unsupported field selector, in the kind's wording.
    pub fn unknown_field_label(&self, fields: &FieldSelector, error: ApiError) -> ApiError {
        let plain =
            !self.is_custom() && !has_own_labels(&self.resource.group, &self.resource.plural);
        let mut paths = fields
            .requirements()
            .iter()
            .map(|requirement| &requirement.path);
        match paths.find(|path| !self.has_field_label(path)) {
            Some(path) if plain => ApiError::bad_request(format!(
                "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )),
            _ => error,
        }
    }

    /// Whether objects can be selected by this field.
    pub fn has_field_label(&self, path: &str) -> bool {
        if matches!(path, "metadata.name")
            || (path == "metadata.namespace" && self.resource.namespaced)
        {
            return true;
        }
        match &self.shape {
            SchemaSource::BuiltIn { .. } => {
                has_field_label(&self.resource.group, &self.resource.plural, path)
            }
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => definition.versions[*version]
                .selectable_fields
                .iter()
                .any(|field| label(field) == path),
        }
    }

    /// The value of a selectable field, as text.
    pub fn field(&self, value: &Value, path: &str) -> String {
        match &self.shape {
            SchemaSource::BuiltIn { .. } => field_value(&self.resource.plural, value, path),
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => {
                let fields = &definition.versions[*version].selectable_fields;
                let field = fields.iter().find(|field| label(field) == path);
                let found = field.and_then(|field| field.find(value).first().copied());
                found.map(text).unwrap_or_default()
            }
        }
    }

    /// The printer of this kind's rows.
    pub fn printer(&self) -> Printer {
        match &self.shape {
            SchemaSource::BuiltIn { .. } => {
                Printer::builtin(&self.resource.group, &self.version, &self.resource.plural)
            }
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => {
                let columns = &definition.versions[*version].printer_columns;
                Printer::custom(columns.iter().map(column).collect())
            }
        }
    }

    /// The paths of the scale subresource, if there is one.
    pub fn scale(&self) -> Option<scale::Paths<'_>> {
        match &self.shape {
            SchemaSource::BuiltIn { .. } => {
                scale::is_scalable(&self.resource.group, &self.resource.plural)
                    .then_some(scale::BUILT_IN)
            }
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => {
                let paths = definition.versions[*version].scale.as_ref()?;
                Some(scale::Paths {
                    spec_replicas: paths.spec_replicas.source(),
                    status_replicas: paths.status_replicas.source(),
                    selector: paths.label_selector.as_ref().map(crd::JsonPath::source),
                })
            }
        }
    }

    /// The path of the replicas in a version of this resource; `None` if there is no such version,
    /// empty if it has no Scale.
    pub fn number_path(&self, api_version: &str) -> Option<&str> {
        let SchemaSource::Custom { definition, .. } = &self.shape else {
            return Some(scale::BUILT_IN.spec_replicas);
        };
        let (_, name) = api_version.rsplit_once('/')?;
        let version = definition
            .versions
            .iter()
            .find(|version| version.name == name)?;
        let scale = version.scale.as_ref();
        Some(scale.map_or("", |paths| paths.spec_replicas.source()))
    }

    /// The deprecation warning of this version.
    pub fn deprecation(&self) -> Option<String> {
        match &self.shape {
            SchemaSource::BuiltIn { .. } => self.traits().deprecation.map(str::to_owned),
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => definition.deprecation(&definition.versions[*version]),
        }
    }
}

/// A selectable field as selectors write it: without the leading dot.
fn label(path: &crd::JsonPath) -> &str {
    path.source().trim_start_matches('.')
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn column(column: &crd::PrinterColumn) -> table::Column {
    let path = column.path.clone();
    table::Column {
        definition: table::ColumnDefinition {
            name: column.name.clone(),
            kind: column.ty.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: column.priority,
        },
        path: Box::new(move |value| path.find(value).first().map(|found| (*found).clone())),
    }
}
