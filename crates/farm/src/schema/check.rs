//! Compares a configuration with its schema.

use std::{collections::BTreeMap, fmt};

use neap_kit::suggest::nearest;
use serde_json::{Map, Value};

use super::{
    Field, Program, Schema, older_form,
    scalar::{check_well_known, fault},
};

/// Something that keeps a program from starting, or from working.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where it is, such as `grpcServers[0].authenticationPolicy`.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What to write instead, if that is known.
    pub suggestion: Option<String>,
}

impl Finding {
    /// A finding without a suggestion.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
            suggestion: None,
        }
    }

    /// The same finding with a suggestion.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "the configuration"
        } else {
            &self.path
        };
        write!(f, "{path}: {}", self.problem)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// The number of findings after which the rest is not worth reading.
const MAX_FINDINGS: usize = 50;
/// The depth of nested messages. Backends may nest without an end.
const MAX_DEPTH: usize = 64;

/// Everything in `configuration` that does not fit the schema of the program.
pub fn check(schema: &Schema, program: Program, configuration: &Value) -> Vec<Finding> {
    let mut checker = Checker {
        schema,
        findings: Vec::new(),
    };
    checker.message(program.message(), configuration, "", 0);
    checker.findings
}

struct Checker<'a> {
    schema: &'a Schema,
    findings: Vec<Finding>,
}

impl Checker<'_> {
    fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn message(&mut self, name: &str, value: &Value, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.add(Finding::new(path, "is nested too deeply"));
        }
        if let Some(checked) = check_well_known(name, value) {
            if let Err(wants) = checked {
                self.wrong(name, value, path, wants);
            }
            return;
        }
        let Some(fields) = self.schema.message(name) else {
            // Messages of other projects, such as those of OpenTelemetry, are not described.
            return;
        };
        let Value::Object(object) = value else {
            return self.wrong(name, value, path, "an object");
        };
        self.oneofs(fields, object, path);
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (key, value) in object {
            let json_name = json_name(key);
            let Some(field) = fields.get(&json_name) else {
                let finding = unknown_field(name, fields, key, &join(path, key));
                self.add(finding);
                continue;
            };
            if let Some(other) = seen.insert(json_name, key) {
                let problem = format!("is the same field as {other:?}");
                self.add(Finding::new(join(path, key), problem));
            }
            self.field(name, field, value, &join(path, key), depth);
        }
    }

    fn oneofs(
        &mut self,
        fields: &BTreeMap<String, Field>,
        object: &Map<String, Value>,
        path: &str,
    ) {
        let mut chosen: BTreeMap<&str, &str> = BTreeMap::new();
        for (key, value) in object {
            let field = fields.get(&json_name(key)).filter(|_| !value.is_null());
            let Some(oneof) = field.and_then(|field| field.oneof.as_deref()) else {
                continue;
            };
            if let Some(other) = chosen.insert(oneof, key) {
                let problem = format!("{other:?} and {key:?} exclude each other");
                self.add(Finding::new(path, problem).suggest("keep one of them"));
            }
        }
    }

    fn field(&mut self, message: &str, field: &Field, value: &Value, path: &str, depth: usize) {
        // Null is an absent field, except for a field that may be any value.
        if value.is_null() {
            return;
        }
        if field.key.is_some() {
            let Value::Object(entries) = value else {
                return self.wrong_field(message, field, value, path, "an object");
            };
            for (key, value) in entries {
                let path = format!("{path}[{key:?}]");
                self.element(message, field, value, &path, depth);
            }
        } else if field.repeated {
            let Value::Array(items) = value else {
                return self.wrong_field(message, field, value, path, "a list");
            };
            for (at, value) in items.iter().enumerate() {
                self.element(message, field, value, &format!("{path}[{at}]"), depth);
            }
        } else {
            self.element(message, field, value, path, depth);
        }
    }

    fn element(&mut self, message: &str, field: &Field, value: &Value, path: &str, depth: usize) {
        let reference = field.reference.as_deref().unwrap_or_default();
        match &*field.kind {
            "message" if value.is_null() && reference != "google.protobuf.Value" => {
                self.add(Finding::new(path, "is null, which an element cannot be"));
            }
            "message" => self.message(reference, value, path, depth + 1),
            "enum" => self.enumeration(reference, value, path),
            kind => {
                if let Some(wants) = fault(kind, value) {
                    self.wrong_field(message, field, value, path, wants);
                }
            }
        }
    }

    fn enumeration(&mut self, name: &str, value: &Value, path: &str) {
        let Some(values) = self.schema.enumeration(name) else {
            return;
        };
        let known = match value {
            Value::String(text) => values.contains_key(text),
            Value::Number(number) => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
            _ => false,
        };
        if known {
            return;
        }
        let names: Vec<_> = values.keys().map(String::as_str).collect();
        let problem = format!("is {}", shown(value));
        let suggestion = format!("use one of {}", names.join(", "));
        self.add(Finding::new(path, problem).suggest(suggestion));
    }

    fn wrong_field(
        &mut self,
        message: &str,
        field: &Field,
        value: &Value,
        path: &str,
        wants: &str,
    ) {
        let reference = field.reference.as_deref().unwrap_or(message);
        self.wrong(reference, value, path, wants);
    }

    /// A value of a wrong type, which may be an older form.
    fn wrong(&mut self, message: &str, value: &Value, path: &str, wants: &str) {
        let problem = format!("is {}, and has to be {wants}", shown(value));
        let finding = Finding::new(path, problem);
        let field = last_field(path);
        self.add(match older_form(message, field, value) {
            Some(replacement) => finding.suggest(replacement),
            None => finding,
        });
    }
}

fn unknown_field(
    message: &str,
    fields: &BTreeMap<String, Field>,
    key: &str,
    path: &str,
) -> Finding {
    let kind = message
        .strip_prefix("buildbarn.configuration.")
        .unwrap_or(message);
    let finding = Finding::new(path, format!("is no field of {kind}"));
    if let Some(replacement) = older_form(message, key, &Value::Null) {
        return finding.suggest(replacement);
    }
    let names = fields.keys().map(String::as_str);
    match nearest(&json_name(key), names) {
        Some(name) => finding.suggest(format!("did you mean {name:?}?")),
        None => finding,
    }
}

/// The name of a field as JSON writes it: both `listen_addresses` and `listenAddresses` are accepted.
pub(super) fn json_name(key: &str) -> String {
    let mut parts = key.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// The name of the last field of a path, without indexes.
fn last_field(path: &str) -> &str {
    let field = path.rsplit('.').next().unwrap_or_default();
    field.split('[').next().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a string".to_owned(),
        other => other.to_string(),
    }
}
