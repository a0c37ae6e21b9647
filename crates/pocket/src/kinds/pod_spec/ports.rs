//! Validation of the ports of containers.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    kinds::{
        fields::{flag, list, number, text},
        names,
        path::Path,
    },
    status::Problems,
};

/// Validates the ports of one container.
pub(super) fn check(container: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("ports");
    let mut seen = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let complaints = names::port_name(name);
            // An invalid name is not also reported as a duplicate.
            if complaints.is_empty() && !seen.insert(name) {
                problems.duplicate(path.field("name"), name);
            }
            for complaint in complaints {
                problems.invalid(path.field("name"), name, complaint);
            }
        }
        let number = number(port, "containerPort");
        if number == 0 {
            problems.required(path.field("containerPort"), "");
        } else {
            check_number(number, &path.field("containerPort"), problems);
        }
        check_host_port(port, &path, problems);
    }
}

fn check_number(port: i64, path: &Path<'_>, problems: &mut Problems) {
    for complaint in names::port_number(port) {
        problems.invalid(path, port, complaint);
    }
}

fn check_host_port(port: &Value, path: &Path<'_>, problems: &mut Problems) {
    let host = number(port, "hostPort");
    if host != 0 {
        check_number(host, &path.field("hostPort"), problems);
    }
}

/// A host port may be used once, and equals the container port with `hostNetwork`.
pub(super) fn check_host_ports(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let mut taken = HashSet::new();
    let (path, inits) = (path.field("containers"), path.field("initContainers"));
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let path = path.index(index);
        check_taken(
            container,
            flag(spec, "hostNetwork"),
            &mut taken,
            &path,
            problems,
        );
    }
    // Init containers run before the others, each with its ports, and each is reported as if it
    // were the first.
    for container in list(spec, "initContainers") {
        let path = inits.index(0);
        check_taken(container, false, &mut HashSet::new(), &path, problems);
    }
}

fn check_taken(
    container: &Value,
    shared: bool,
    taken: &mut HashSet<String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.field("ports");
    for (index, port) in list(container, "ports").iter().enumerate() {
        let host = number(port, "hostPort");
        let path = path.index(index);
        if shared && host != 0 && host != number(port, "containerPort") {
            let detail = "must match `containerPort` when `hostNetwork` is true";
            problems.invalid(path.field("hostPort"), host, detail);
        }
        if host == 0 {
            continue;
        }
        let key = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
        if !taken.insert(key.clone()) {
            problems.duplicate(path.field("hostPort"), key);
        }
    }
}
