//! Validation of environment variables and the sources of their values.

use serde_json::Value;

use super::{
    check_text,
    mounts::not_found,
    references,
    volumes::{ValidVolumes, check_no_backsteps},
};
use crate::{
    kinds::{
        field_rules::obeys,
        fields::{is_set, list, text},
        names::{self, Complaints},
        path::Path,
    },
    status::Problems,
};

const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

/// Validates `env` and `envFrom` of one container.
pub(super) fn check(
    container: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let env = path.field("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = env.index(index);
        check_needed(variable, "name", names::variable, &path, problems);
        if is_set(variable, "valueFrom") {
            check_source(variable, volumes, &path, problems);
        }
    }
    let from = path.field("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        check_bulk_source(source, &from, &from.index(index), problems);
    }
}

fn check_source(
    variable: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let from = &variable["valueFrom"];
    let path = path.field("valueFrom");
    let sources: Vec<&str> = SOURCES.into_iter().filter(|s| is_set(from, s)).collect();
    if sources.is_empty() {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        problems.invalid(path, "", detail);
        return;
    }
    if !text(variable, "value").is_empty() {
        problems.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources.len() > 1 {
        let detail = "may not have more than one field specified at a time";
        problems.invalid(path, "", detail);
    }
    if is_set(from, "fieldRef") {
        let path = path.field("fieldRef");
        references::check_field(
            &from["fieldRef"],
            &references::VARIABLE_FIELDS,
            &path,
            problems,
        );
    }
    if is_set(from, "resourceFieldRef") {
        let path = path.field("resourceFieldRef");
        references::check_resource(&from["resourceFieldRef"], false, &path, problems);
    }
    for reference in ["configMapKeyRef", "secretKeyRef"] {
        if is_set(from, reference) {
            check_key(&from[reference], &path.field(reference), problems);
        }
    }
    if is_set(from, "fileKeyRef") {
        check_file(&from["fileKeyRef"], &path.field("fileKeyRef"), problems);
        check_file_volume(&from["fileKeyRef"], volumes, &path, problems);
    }
}

fn check_key(reference: &Value, path: &Path<'_>, problems: &mut Problems) {
    let name = text(reference, "name");
    obeys(names::subdomain, name, &path.field("name"), problems);
    check_needed(reference, "key", names::config_key, path, problems);
}

/// Validates a reference to a variable in a file that a container wrote.
fn check_file(reference: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_needed(reference, "key", names::variable, path, problems);
    check_needed(reference, "volumeName", names::label, path, problems);
    let (file, place) = (text(reference, "path"), path.field("path"));
    if file.is_empty() {
        problems.required(place, "");
    } else {
        check_no_backsteps(file, &place, problems);
    }
}

fn check_file_volume(
    reference: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let (path, name) = (path.field("fileKeyRef"), text(reference, "volumeName"));
    let place = path.field("volumeName");
    match volumes.get(name) {
        None => not_found(&place, name, problems),
        Some(volume) if !is_set(volume, "emptyDir") => {
            let detail = "referenced volume must be of type emptyDir";
            problems.invalid(place, name, detail);
        }
        Some(_) => {}
    }
}

/// Applies a name rule to a required field.
fn check_needed(
    holder: &Value,
    field: &str,
    rule: fn(&str) -> Complaints,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if text(holder, field).is_empty() {
        problems.required(path.field(field), "");
    } else {
        check_text(holder, field, rule, path, problems);
    }
}

/// Errors in the choice of sources are reported for all of them, at `all`.
fn check_bulk_source(source: &Value, all: &Path<'_>, path: &Path<'_>, problems: &mut Problems) {
    check_text(source, "prefix", names::variable, path, problems);
    let sources = ["configMapRef", "secretRef"];
    for reference in sources.into_iter().filter(|s| is_set(source, s)) {
        let path = path.field(reference);
        check_needed(
            &source[reference],
            "name",
            names::subdomain,
            &path,
            problems,
        );
    }
    let detail = match sources.iter().filter(|s| is_set(source, s)).count() {
        0 => "must specify one of: `configMapRef` or `secretRef`",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    problems.invalid(all, "", detail);
}
