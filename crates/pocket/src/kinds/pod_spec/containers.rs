//! Validation of containers: names, images, and what init containers may not have.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    claims::{self, ClaimNames},
    env, mounts, ports, probes, restarts, security,
    volumes::ValidVolumes,
};
use crate::{
    kinds::{
        field_rules::one_of,
        fields::{is_set, list, text},
        names,
        path::Path,
        resources::check_requirements,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

/// Validates all containers of a pod spec.
pub(super) fn check(
    spec: &Value,
    volumes: &ValidVolumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let claims = claims::names(spec);
    let lasting = ["containers", "initContainers"].into_iter();
    let lasting: HashSet<&str> = lasting
        .flat_map(|field| list(spec, field))
        .map(|container| text(container, "name"))
        .collect();
    let mut names = HashSet::new();
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        let path = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            let path = path.index(index);
            check_one(container, (spec, volumes, &claims), &path, problems);
            let name = text(container, "name");
            let ephemeral = field == "ephemeralContainers";
            if ephemeral {
                check_image_name(container, &path, problems);
            }
            if !names.insert(name) {
                problems.duplicate(path.field("name"), name);
            }
            if ephemeral {
                check_target(container, &lasting, &path, problems);
                check_ephemeral(container, &path, problems);
                continue;
            }
            restarts::check(container, &path, problems);
            if field == "initContainers" && text(container, "restartPolicy") != "Always" {
                check_init(container, &path, problems);
            } else {
                probes::check(container, spec, &path, problems);
            }
        }
    }
    ports::check_host_ports(spec, path, problems);
}

fn check_one(
    container: &Value,
    (spec, volumes, claims): (&Value, &ValidVolumes<'_>, &ClaimNames<'_>),
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let name = text(container, "name");
    if !name.is_empty() {
        for complaint in names::label(name) {
            problems.invalid(path.field("name"), name, complaint);
        }
    }
    if text(container, "image").is_empty() {
        problems.required(path.field("image"), "");
    }
    let policies = ["File", "FallbackToLogsOnError"];
    let field = "terminationMessagePolicy";
    one_of(&policies, container, path, field, problems);
    ports::check(container, path, problems);
    env::check(container, volumes, path, problems);
    mounts::check(container, volumes, path, problems);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(&policies, container, path, "imagePullPolicy", problems);
    let resources = path.field("resources");
    check_requirements(&container["resources"], &resources, problems);
    claims::check_uses(&container["resources"], claims, &resources, problems);
    restarts::check_resize(container, spec, &path.field("resizePolicy"), problems);
    security::check_container(container, spec, path, problems);
}

/// The target of an ephemeral container must be a container of the pod that keeps running.
fn check_target(
    container: &Value,
    lasting: &HashSet<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let target = text(container, "targetContainerName");
    if !target.is_empty() && !lasting.contains(target) {
        problems.push(FieldError {
            kind: FieldErrorKind::NotFound,
            path: path.field("targetContainerName").to_string(),
            value: Some(target.into()),
            detail: String::new(),
        });
    }
}

/// Refuses fields that ephemeral containers may not have, because they do not affect the pod's
/// readiness or resources.
fn check_ephemeral(container: &Value, path: &Path<'_>, problems: &mut Problems) {
    let detail = "cannot be set for an Ephemeral Container";
    for field in [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        let given = &container[field];
        // An empty list counts as set; resources are always there.
        let empty =
            field == "resources" && given.as_object().is_some_and(serde_json::Map::is_empty);
        if !given.is_null() && !empty {
            problems.forbidden(path.field(field), detail);
        }
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if !text(mount, field).is_empty() {
                problems.forbidden(mounts.index(index).field(field), detail);
            }
        }
    }
}

/// Validates the name of an image in pods. Templates may have any: some controllers replace it.
pub(in crate::kinds) fn check_image_name(
    container: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let image = text(container, "image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        problems.invalid(path.field("image"), image, detail);
    }
}

/// An init container runs to its end before the others, so it can have no readiness; one that
/// restarts always is a sidecar and can.
fn check_init(container: &Value, path: &Path<'_>, problems: &mut Problems) {
    for field in [
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
    ] {
        if is_set(container, field) {
            let detail = "may not be set for init containers without restartPolicy=Always";
            problems.forbidden(path.field(field), detail);
        }
    }
    let all = path.field("resizePolicy");
    for (index, entry) in list(container, "resizePolicy").iter().enumerate() {
        let policy = text(entry, "restartPolicy");
        if policy == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            problems.invalid(all.index(index).field("restartPolicy"), policy, detail);
        }
    }
}
