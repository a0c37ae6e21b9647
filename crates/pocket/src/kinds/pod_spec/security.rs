//! Validation of security contexts.

mod windows;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::volumes::check_inside;
use crate::{
    kinds::{
        field_rules::{check_id, one_of},
        fields::{flag, is_set, list, text},
        path::Path,
    },
    status::{FieldErrorKind, Problems},
};

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// Validates the security context of a pod.
pub(super) fn check_pod(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("securityContext");
    let context = &spec["securityContext"];
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        check_id(&context[field], &path.field(field), problems);
    }
    let groups = path.field("supplementalGroups");
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        check_id(group, &groups.index(index), problems);
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(path.field("shareProcessNamespace"), true, detail);
    }
    check_sysctls(spec, &path.field("sysctls"), problems);
    for (field, known) in [
        ("fsGroupChangePolicy", &["Always", "OnRootMismatch"][..]),
        ("supplementalGroupsPolicy", &["Merge", "Strict"]),
        // Mounting volumes with an SELinux label is not enabled.
        ("seLinuxChangePolicy", &["Recursive"]),
    ] {
        check_choice(context, field, known, &path, problems);
    }
    check_profiles(context, &path, problems);
    windows::check(context, &path, problems);
}

/// Refuses a value that is set, even if empty, and not listed.
fn check_choice(
    context: &Value,
    field: &str,
    known: &[&str],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if let Some(choice) = context[field]
        .as_str()
        .filter(|choice| !known.contains(choice))
    {
        problems.not_supported(path.field(field), choice, known);
    }
}

/// Validates the security context of one container.
pub(super) fn check_container(
    container: &Value,
    spec: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if !is_set(container, "securityContext") {
        return;
    }
    let path = path.field("securityContext");
    let context = &container["securityContext"];
    for field in ["runAsUser", "runAsGroup"] {
        check_id(&context[field], &path.field(field), problems);
    }
    let mounts = ["Default", "Unmasked"];
    check_choice(context, "procMount", &mounts, &path, problems);
    if context["procMount"] == "Unmasked" && spec["hostUsers"] != false {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        problems.invalid(path.field("procMount"), "Unmasked", detail);
    }
    check_profiles(context, &path, problems);
    check_escalation(context, &path, problems);
    windows::check(context, &path, problems);
}

/// A privileged container, or one with `CAP_SYS_ADMIN`, cannot disallow privilege escalation.
fn check_escalation(context: &Value, path: &Path<'_>, problems: &mut Problems) {
    if context["allowPrivilegeEscalation"] != false {
        return;
    }
    let added = list(&context["capabilities"], "add");
    for (has, what) in [
        (flag(context, "privileged"), "`privileged` to true"),
        (
            added.iter().any(|right| right == "CAP_SYS_ADMIN"),
            "`capabilities.Add` CAP_SYS_ADMIN",
        ),
    ] {
        if has {
            let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            let shown = written(context);
            problems.written(FieldErrorKind::Invalid, path, &shown, &detail);
        }
    }
}

/// A context as errors show it: every field, capitalized.
fn written(context: &Value) -> String {
    let part = |field: &str, parts: &[(&str, &str)]| {
        let part = &context[field];
        if part.is_null() {
            return "null".to_owned();
        }
        let fields = parts.iter().map(|(name, key)| {
            let value = match &part[*key] {
                // An absent text is an empty one where it is no pointer.
                Value::Null if matches!(*name, "User" | "Role" | "Level" | "Type") => json!(""),
                value => value.clone(),
            };
            format!("\"{name}\":{value}")
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    let profile = [("Type", "type"), ("LocalhostProfile", "localhostProfile")];
    let capabilities = part("capabilities", &[("Add", "add"), ("Drop", "drop")]);
    let labels = [
        ("User", "user"),
        ("Role", "role"),
        ("Type", "type"),
        ("Level", "level"),
    ];
    let labels = part("seLinuxOptions", &labels);
    let windows = part(
        "windowsOptions",
        &[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName"),
            ("GMSACredentialSpec", "gmsaCredentialSpec"),
            ("RunAsUserName", "runAsUserName"),
            ("HostProcess", "hostProcess"),
        ],
    );
    let (seccomp, armor) = (
        part("seccompProfile", &profile),
        part("appArmorProfile", &profile),
    );
    let plain = |field: &str| &context[field];
    format!(
        r#"{{"Capabilities":{capabilities},"Privileged":{},"SELinuxOptions":{labels},"WindowsOptions":{windows},"RunAsUser":{},"RunAsGroup":{},"RunAsNonRoot":{},"ReadOnlyRootFilesystem":{},"AllowPrivilegeEscalation":{},"ProcMount":{},"SeccompProfile":{seccomp},"AppArmorProfile":{armor}}}"#,
        plain("privileged"),
        plain("runAsUser"),
        plain("runAsGroup"),
        plain("runAsNonRoot"),
        plain("readOnlyRootFilesystem"),
        plain("allowPrivilegeEscalation"),
        plain("procMount"),
    )
}

fn check_profiles(context: &Value, path: &Path<'_>, problems: &mut Problems) {
    if is_set(context, "seccompProfile") {
        let path = path.field("seccompProfile");
        check_seccomp(&context["seccompProfile"], &path, problems);
    }
    if is_set(context, "appArmorProfile") {
        let path = path.field("appArmorProfile");
        check_armor(&context["appArmorProfile"], &path, problems);
    }
}

/// The type is validated before, and apart from, the fields that go with it.
fn check_profile_type(profile: &Value, field: &str, path: &Path<'_>, problems: &mut Problems) {
    match text(profile, "type") {
        "" => {
            let detail = format!("type is required when {field} is set");
            problems.required(path.field("type"), detail);
        }
        _ => one_of(&PROFILES, profile, path, "type", problems),
    }
}

fn check_seccomp(profile: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_profile_type(profile, "seccompProfile", path, problems);
    let place = path.field("localhostProfile");
    let file = profile["localhostProfile"].as_str();
    match (text(profile, "type"), file) {
        ("Localhost", None) => {
            let detail = "must be set when seccomp type is Localhost";
            problems.required(place, detail);
        }
        ("Localhost", Some(file)) => check_inside(file, &place, problems),
        (kind, Some(file)) => {
            let [kind, file] = [kind, file].map(|text| json!(text));
            let shown = format!(r#"{{"Type":{kind},"LocalhostProfile":{file}}}"#);
            let detail = "can only be set when seccomp type is Localhost";
            problems.written(FieldErrorKind::Invalid, place, &shown, detail);
        }
        (_, None) => {}
    }
}

fn check_armor(profile: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_profile_type(profile, "appArmorProfile", path, problems);
    let place = path.field("localhostProfile");
    let name = profile["localhostProfile"].as_str();
    match (text(profile, "type"), name) {
        ("Localhost", name) if name.is_none_or(|name| name.trim().is_empty()) => {
            let detail = "must be set when AppArmor type is Localhost";
            problems.required(place, detail);
        }
        ("Localhost", Some(name)) if name.trim() != name => {
            problems.invalid(place, name, "must not be padded with whitespace");
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            problems.invalid(place, name, detail);
        }
        _ => {}
    }
}

fn check_sysctls(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for (index, sysctl) in list(&spec["securityContext"], "sysctls").iter().enumerate() {
        let path = path.index(index);
        let (path, name) = (path.field("name"), text(sysctl, "name"));
        if name.is_empty() {
            problems.required(path, "");
        } else if !is_sysctl(name) {
            let detail = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            problems.invalid(path, name, detail);
        } else if !seen.insert(name) {
            problems.duplicate(path, name);
        }
        for (field, prefixes) in [
            ("hostNetwork", &["net."][..]),
            (
                "hostIPC",
                &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."],
            ),
        ] {
            if flag(spec, field) && prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                let detail = format!("may not be specified when '{field}' is true");
                problems.invalid(path, name, detail);
            }
        }
    }
}

/// The syntax of sysctl names: words separated by dots or slashes.
fn is_sysctl(name: &str) -> bool {
    let alone = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let word = |word: &str| {
        word.starts_with(alone)
            && word.ends_with(alone)
            && word.chars().all(|c| alone(c) || c == '-' || c == '_')
    };
    name.len() <= 253 && name.split(['.', '/']).all(word)
}
