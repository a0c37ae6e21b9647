//! Validation of volumes whose files show the content of objects or of the pod itself.

use std::collections::HashSet;

use serde_json::Value;

use super::check_inside;
use crate::{
    kinds::{
        fields::{is_set, list, number, text},
        path::Path,
        pod_spec::references,
    },
    status::Problems,
};

/// Validates a volume that shows an object's keys as files.
pub(super) fn check_object(source: &Value, name: &str, path: &Path<'_>, problems: &mut Problems) {
    if text(source, name).is_empty() {
        problems.required(path.field(name), "");
    }
    check_mode(source, "defaultMode", path, problems);
    check_items(source, path, problems);
}

fn check_items(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let items = path.field("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = items.index(index);
        if text(item, "key").is_empty() {
            problems.required(path.field("key"), "");
        }
        check_file(text(item, "path"), &path.field("path"), problems);
        check_mode(item, "mode", &path, problems);
    }
}

fn check_file(place: &str, path: &Path<'_>, problems: &mut Problems) {
    if place.is_empty() {
        problems.required(path, "");
    } else {
        check_own(place, path, problems);
    }
}

/// Refuses names that start with two dots: the kubelet uses such names in the volume.
fn check_own(place: &str, path: &Path<'_>, problems: &mut Problems) {
    check_inside(place, path, problems);
    if place.starts_with("..") && !(place.starts_with("../")) {
        problems.invalid(path, place, "must not start with '..'");
    }
}

fn check_mode(holder: &Value, field: &str, path: &Path<'_>, problems: &mut Problems) {
    let mode = number(holder, field);
    if !(0..=0o777).contains(&mode) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        problems.invalid(path.field(field), mode, detail);
    }
}

/// Validates downward API files. Errors do not say which of them is meant.
pub(super) fn check_downward(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_mode(source, "defaultMode", path, problems);
    for item in list(source, "items") {
        check_downward_file(item, path, problems);
    }
}

fn check_downward_file(item: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_file(text(item, "path"), &path.field("path"), problems);
    let (field, resource) = (is_set(item, "fieldRef"), is_set(item, "resourceFieldRef"));
    if field {
        let place = path.field("fieldRef");
        references::check_field(
            &item["fieldRef"],
            &references::FILE_FIELDS,
            &place,
            problems,
        );
        if resource {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            problems.invalid(path, "resource", detail);
        }
    } else if resource {
        let place = path.field("resourceFieldRef");
        references::check_resource(&item["resourceFieldRef"], true, &place, problems);
    } else {
        problems.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    check_mode(item, "mode", path, problems);
}

/// Validates a projected volume.
pub(super) fn check_projected(projected: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_mode(projected, "defaultMode", path, problems);
    let mut files = HashSet::new();
    let sources = path.field("sources");
    for (index, source) in list(projected, "sources").iter().enumerate() {
        let place = sources.index(index);
        for kind in ["secret", "configMap"] {
            if is_set(source, kind) {
                check_object_part(&source[kind], &place.field(kind), problems);
                let name = text(&source[kind], "name");
                for item in list(&source[kind], "items") {
                    once(text(item, "path"), name, &mut files, path, problems);
                }
            }
        }
        if is_set(source, "downwardAPI") {
            let place = place.field("downwardAPI");
            for item in list(&source["downwardAPI"], "items") {
                check_downward_file(item, &place, problems);
                let file = text(item, "path");
                once(file, file, &mut files, path, problems);
            }
        }
        check_token(&source["serviceAccountToken"], &place, path, problems);
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        if kinds.iter().filter(|kind| is_set(source, kind)).count() > 1 {
            let detail = "may not specify more than 1 volume type per source";
            problems.forbidden(place, detail);
        }
    }
}

/// Validates one object of a projected volume. Modes belong to the whole volume.
fn check_object_part(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    if text(source, "name").is_empty() {
        problems.required(path.field("name"), "");
    }
    check_items(source, path, problems);
}

fn once<'a>(
    file: &'a str,
    shown: &str,
    files: &mut HashSet<&'a str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if !file.is_empty() && !files.insert(file) {
        problems.invalid(path, shown, "conflicting duplicate paths");
    }
}

fn check_token(token: &Value, source: &Path<'_>, volume: &Path<'_>, problems: &mut Problems) {
    if token.is_null() {
        return;
    }
    let path = source.field("serviceAccountToken");
    let seconds = number(token, "expirationSeconds");
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        problems.invalid(path.field("expirationSeconds"), seconds, detail);
    } else if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        problems.invalid(path.field("expirationSeconds"), seconds, detail);
    }
    check_file(text(token, "path"), &volume.field("path"), problems);
}
