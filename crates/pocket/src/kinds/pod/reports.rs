//! Validation of container and claim statuses in the status of a pod.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    kinds::{
        field_rules::{check_id, obeys},
        fields::{is_set, list, text},
        names,
        path::Path,
    },
    status::Problems,
};

/// Each list of statuses, with the containers that it is about.
const REPORTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

pub(super) fn check(status: &Value, spec: &Value, problems: &mut Problems) {
    check_claims(status, spec, problems);
    let windows = spec["os"]["name"] == "windows";
    let path = Path::At("status");
    for (field, _) in REPORTS {
        let all = path.field(field);
        for (index, report) in list(status, field).iter().enumerate() {
            check_user(&report["user"], windows, &all.index(index), problems);
        }
    }
    for (field, containers) in REPORTS {
        // Of several containers of one name, the first counts.
        let known = list(spec, containers).iter().rev();
        let known: HashMap<&Value, &Value> = known.map(|known| (&known["name"], known)).collect();
        let all = path.field(field);
        for (index, report) in list(status, field).iter().enumerate() {
            let known = known.get(&report["name"]).copied();
            check_devices(report, known, &all.index(index), problems);
        }
    }
}

fn check_claims(status: &Value, spec: &Value, problems: &mut Problems) {
    let path = Path::At("status.resourceClaimStatuses");
    let known = list(spec, "resourceClaims").iter();
    let known: HashSet<&str> = known.map(|known| text(known, "name")).collect();
    let mut seen = HashSet::new();
    for (index, claim) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let (path, name) = (path.index(index), text(claim, "name"));
        if !known.contains(name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            problems.invalid(path.field("name"), name, detail);
        }
        if !seen.insert(name) {
            problems.duplicate(path.field("name"), name);
        }
        if let Some(made) = claim["resourceClaimName"].as_str() {
            let place = path.field("resourceClaimName");
            obeys(names::subdomain, made, &place, problems);
        }
    }
}

fn check_user(user: &Value, windows: bool, path: &Path<'_>, problems: &mut Problems) {
    let linux = &user["linux"];
    let path = path.field("user");
    let path = path.field("linux");
    if windows && is_set(user, "linux") {
        problems.forbidden(path, "cannot be set for a windows pod");
        return;
    }
    for field in ["uid", "gid"] {
        check_id(&linux[field], &path.field(field), problems);
    }
    let groups = path.field("supplementalGroups");
    for (index, group) in list(linux, "supplementalGroups").iter().enumerate() {
        check_id(group, &groups.index(index), problems);
    }
}

fn check_devices(
    report: &Value,
    container: Option<&Value>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let all = path.field("allocatedResourcesStatus");
    let devices = list(report, "allocatedResourcesStatus");
    if matches!(
        path,
        Path::Index(Path::Field(_, "ephemeralContainerStatuses"), _)
    ) {
        if !devices.is_empty() {
            problems.forbidden(all, "must not be specified in container status");
        }
        return;
    }
    let claims = container.map_or(&[][..], |container| list(&container["resources"], "claims"));
    let claims: HashSet<String> = claims.iter().map(claimed).collect();
    for (index, device) in devices.iter().enumerate() {
        let path = all.index(index);
        if let Some(container) = container {
            let (name, place) = (text(device, "name"), path.field("name"));
            check_name(name, (container, &claims), &place, problems);
        }
        check_health(device, &path.field("resources"), problems);
    }
}

/// A claim of a container as statuses name it.
fn claimed(claim: &Value) -> String {
    match text(claim, "request") {
        "" => text(claim, "name").to_owned(),
        request => format!("{}/{request}", text(claim, "name")),
    }
}

fn check_name(
    name: &str,
    (container, claims): (&Value, &HashSet<String>),
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let resources = &container["resources"];
    let Some(claimed) = name.strip_prefix("claim:") else {
        if !is_set(&resources["requests"], name) {
            let detail = "must match one of the container's resource requests";
            problems.invalid(path, name, detail);
        }
        return;
    };
    if !claims.contains(claimed) {
        let detail = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        problems.invalid(path, name, detail);
    }
}

fn check_health(device: &Value, all: &Path<'_>, problems: &mut Problems) {
    let known = ["Healthy", "Unhealthy", "Unknown"];
    let mut seen = HashSet::new();
    for (index, part) in list(device, "resources").iter().enumerate() {
        let (path, health) = (all.index(index), text(part, "health"));
        if !known.contains(&health) {
            problems.not_supported(path.field("health"), health, &known);
        }
        let id = text(part, "resourceID");
        if !seen.insert(id) {
            problems.duplicate(path.field("resourceID"), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::texts;

    #[test]
    fn reports_are_of_what_the_pod_has_and_within_bounds() {
        let spec = json!({
            "resourceClaims": [{"name": "rc"}],
            "containers": [{"name": "c", "resources": {
                "requests": {"cpu": "1"}, "claims": [{"name": "rc", "request": "q"}]}}],
        });
        let of = |report: Value| {
            let mut report = report;
            report["name"] = json!("c");
            json!({"containerStatuses": [report]})
        };
        let place = "status.containerStatuses[0]";
        let devices = format!("{place}.allocatedResourcesStatus[0]");
        for (status, errors) in [
            (json!({"resourceClaimStatuses": [{"name": "rc"}]}), None),
            (
                json!({"resourceClaimStatuses": [{"name": "rc"}, {"name": "rc"}]}),
                Some("status.resourceClaimStatuses[1].name: Duplicate value: \"rc\"".to_owned()),
            ),
            (
                json!({"resourceClaimStatuses": [{"name": "x"}]}),
                Some("status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`".to_owned()),
            ),
            (
                of(json!({"user": {"linux": {"uid": -1, "gid": 0}}})),
                Some(format!("{place}.user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive")),
            ),
            (of(json!({"allocatedResourcesStatus": [{"name": "cpu"}, {"name": "claim:rc/q"}]})), None),
            (
                of(json!({"allocatedResourcesStatus": [{"name": "gpu"}]})),
                Some(format!("{devices}.name: Invalid value: \"gpu\": must match one of the container's resource requests")),
            ),
            (
                of(json!({"allocatedResourcesStatus": [{"name": "cpu", "resources": [{"resourceID": "a"}]}]})),
                Some(format!("{devices}.resources[0].health: Unsupported value: \"\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\"")),
            ),
        ] {
            let mut problems = Problems::new();
            check(&status, &spec, &mut problems);
            assert_eq!(texts(&problems), Vec::from_iter(errors));
        }
    }
}
