//! Rules on the volumes of a pod.

mod ephemeral;

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    kinds::{
        fields::{is_set, list, number, text},
        names,
        path::Path,
        resources::quantity,
    },
    quantity::Quantity,
    status::Problems,
};

pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("volumes");
    let mut seen = HashSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let name = text(volume, "name");
        if !name.is_empty() {
            for complaint in names::label(name) {
                problems.invalid(path.field("name"), name, complaint);
            }
            if !seen.insert(name) {
                problems.duplicate(path.field("name"), name);
            }
        }
        check_one_source(volume, &path, problems);
        check_source(volume, &path, problems);
    }
}

/// The names of the volumes that are in order: others cannot be mounted.
pub(super) fn sound(spec: &Value) -> HashSet<&str> {
    let is_sound = |volume: &&Value| {
        let mut problems = Problems::new();
        check_one_source(volume, &Path::Root, &mut problems);
        check_source(volume, &Path::Root, &mut problems);
        problems.is_empty() && names::label(text(volume, "name")).is_empty()
    };
    let volumes = list(spec, "volumes").iter().filter(is_sound);
    volumes.map(|volume| text(volume, "name")).collect()
}

fn check_one_source(volume: &Value, path: &Path<'_>, problems: &mut Problems) {
    let Some(map) = volume.as_object() else {
        return;
    };
    let sources = map
        .iter()
        .filter(|(key, source)| *key != "name" && !source.is_null());
    for (source, _) in sources.skip(1) {
        let detail = "may not specify more than 1 volume type";
        problems.forbidden(path.field(source), detail);
    }
}

fn check_source(volume: &Value, path: &Path<'_>, problems: &mut Problems) {
    for (source, name) in [("configMap", "name"), ("secret", "secretName")] {
        if is_set(volume, source) {
            check_object(&volume[source], name, &path.field(source), problems);
        }
    }
    if is_set(volume, "ephemeral") {
        let path = path.field("ephemeral");
        ephemeral::check(&volume["ephemeral"], &path, problems);
    }
    if is_set(volume, "hostPath") {
        let place = path.field("hostPath");
        check_no_backsteps(
            text(&volume["hostPath"], "path"),
            &place.field("path"),
            problems,
        );
    }
    let limit = &volume["emptyDir"]["sizeLimit"];
    if quantity(limit).is_some_and(Quantity::is_negative) {
        let empty = path.field("emptyDir");
        let detail = "SizeLimit field must be a valid resource quantity";
        problems.forbidden(empty.field("sizeLimit"), detail);
    }
    if is_set(volume, "downwardAPI") {
        let path = path.field("downwardAPI");
        check_files(&volume["downwardAPI"], &path, problems);
    }
    if is_set(volume, "projected") {
        check_projected(&volume["projected"], &path.field("projected"), problems);
    }
}

/// A volume that shows an object's keys as files.
fn check_object(source: &Value, name: &str, path: &Path<'_>, problems: &mut Problems) {
    if text(source, name).is_empty() {
        problems.required(path.field(name), "");
    }
    check_files(source, path, problems);
}

fn check_files(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_mode(source, "defaultMode", path, problems);
    let items = path.field("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = items.index(index);
        check_mode(item, "mode", &path, problems);
        check_inside(text(item, "path"), &path.field("path"), problems);
    }
}

fn check_mode(holder: &Value, field: &str, path: &Path<'_>, problems: &mut Problems) {
    let mode = number(holder, field);
    if !(0..=0o777).contains(&mode) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        problems.invalid(path.field(field), mode, detail);
    }
}

fn check_projected(projected: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_mode(projected, "defaultMode", path, problems);
    let sources = path.field("sources");
    for (index, source) in list(projected, "sources").iter().enumerate() {
        let path = sources.index(index);
        let kinds = source.as_object().into_iter().flatten();
        for (kind, _) in kinds.filter(|(_, value)| !value.is_null()).skip(1) {
            let detail = "may not specify more than 1 volume type";
            problems.forbidden(path.field(kind), detail);
        }
        for kind in ["configMap", "secret"] {
            if is_set(source, kind) {
                check_object(&source[kind], "name", &path.field(kind), problems);
            }
        }
        check_token(&source["serviceAccountToken"], &path, problems);
    }
}

fn check_token(token: &Value, path: &Path<'_>, problems: &mut Problems) {
    if token.is_null() {
        return;
    }
    let path = path.field("serviceAccountToken");
    let seconds = number(token, "expirationSeconds");
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        problems.invalid(path.field("expirationSeconds"), seconds, detail);
    } else if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        problems.invalid(path.field("expirationSeconds"), seconds, detail);
    }
    check_inside(text(token, "path"), &path.field("path"), problems);
}

/// A path below the volume: relative, and not leading out of it.
pub(super) fn check_inside(place: &str, path: &Path<'_>, problems: &mut Problems) {
    if place.starts_with('/') {
        problems.invalid(path, place, "must be a relative path");
    }
    check_no_backsteps(place, path, problems);
}

fn check_no_backsteps(place: &str, path: &Path<'_>, problems: &mut Problems) {
    if place.split('/').any(|part| part == "..") {
        problems.invalid(path, place, "must not contain '..'");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::texts;

    #[test]
    fn a_claim_of_ones_own_says_how_much() {
        let claim = |requests: Value| {
            json!({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}},
            }}}]})
        };
        let told = |spec: &Value| {
            let mut problems = Problems::new();
            check(spec, &Path::At("spec"), &mut problems);
            texts(&problems)
        };
        assert_eq!(told(&claim(json!({"storage": "1Gi"}))), [""; 0]);
        let none = claim(json!({}));
        assert_eq!(
            told(&none),
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"
            ]
        );
        assert!(sound(&none).is_empty());
    }
}
