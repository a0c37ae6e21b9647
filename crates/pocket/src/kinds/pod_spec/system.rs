//! Validation that depends on the operating system of a pod, and on the namespaces it shares with
//! its node.

use serde_json::Value;

use crate::{
    kinds::{
        fields::{flag, is_set, list, text},
        path::Path,
    },
    status::Problems,
};

/// Fields of the pod's security context that only Linux has.
const LINUX_POD: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

/// Fields of a container's security context that only Linux has.
const LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_users(spec, path, problems);
    check_host_process(spec, path, problems);
    let os = &spec["os"];
    match text(os, "name") {
        "linux" => check_linux(spec, path, problems),
        "windows" => check_windows(spec, path, problems),
        // The schema reports a missing name.
        "" => {}
        other => problems.not_supported(path.field("os"), other, &["linux", "windows"]),
    }
}

/// A pod with its own user namespace may not use the node's namespaces.
fn check_users(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    if spec["hostUsers"] != false {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, field) {
            problems.forbidden(path.field(shown), detail);
        }
    }
    each_container(spec, path, |container, path| {
        if !list(container, "volumeDevices").is_empty() {
            problems.forbidden(path.field("volumeDevices"), detail);
        }
    });
}

fn each_container(spec: &Value, path: &Path<'_>, mut check: impl FnMut(&Value, &Path<'_>)) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            check(container, &path.index(index));
        }
    }
}

fn check_linux(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    const FIELD: &str = "windowsOptions";
    let detail = "windows options cannot be set for a linux pod";
    if is_set(&spec["securityContext"], FIELD) {
        let path = path.field("securityContext");
        problems.forbidden(path.field(FIELD), detail);
    }
    each_container(spec, path, |container, path| {
        if is_set(&container["securityContext"], FIELD) {
            let path = path.field("securityContext");
            problems.forbidden(path.field(FIELD), detail);
        }
    });
}

fn check_windows(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let detail = "cannot be set for a windows pod";
    let context = &spec["securityContext"];
    let at = path.field("securityContext");
    for field in LINUX_POD.iter().filter(|field| is_given(context, field)) {
        problems.forbidden(at.field(field), detail);
    }
    if is_set(spec, "hostUsers") {
        problems.forbidden(path.field("hostUsers"), detail);
    }
    for field in ["hostPID", "hostIPC"] {
        if flag(spec, field) {
            problems.forbidden(path.field(field), detail);
        }
    }
    if is_set(spec, "shareProcessNamespace") {
        problems.forbidden(path.field("shareProcessNamespace"), detail);
    }
    each_container(spec, path, |container, path| {
        let context = &container["securityContext"];
        let at = path.field("securityContext");
        for field in LINUX_CONTAINER.iter().filter(|f| is_given(context, f)) {
            problems.forbidden(at.field(field), detail);
        }
    });
}

/// Whether a field is set; an empty list is not.
fn is_given(context: &Value, field: &str) -> bool {
    is_set(context, field)
        && context[field]
            .as_array()
            .is_none_or(|list| !list.is_empty())
}

/// Validates `hostProcess`: all containers have it, or none.
fn check_host_process(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let said =
        |holder: &Value| holder["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let pod = said(spec);
    let (mut all, mut some) = (true, false);
    each_container(spec, path, |container, path| {
        let own = said(container);
        let process = own.or(pod).unwrap_or_default();
        all &= process;
        some |= process;
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let path = path.field("securityContext");
            let path = path.field("windowsOptions");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            problems.invalid(path.field("hostProcess"), own, detail);
        }
    });
    if !some {
        return;
    }
    if !all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        problems.invalid(path, "", detail);
    }
    if !flag(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        problems.invalid(path.field("hostNetwork"), false, detail);
    }
}
