//! Rules on as whom and how confined containers run.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::volumes::check_inside;
use crate::{
    kinds::{
        field_rules::one_of,
        fields::{flag, is_set, list, text},
        path::Path,
    },
    status::{FieldErrorKind, Problems},
};

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// Rules on what holds for all containers of a pod.
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
    let change = ["Always", "OnRootMismatch"];
    one_of(&change, context, &path, "fsGroupChangePolicy", problems);
    check_profiles(context, &path, problems);
    let groups = ["Merge", "Strict"];
    let field = "supplementalGroupsPolicy";
    one_of(&groups, context, &path, field, problems);
    let field = "seLinuxChangePolicy";
    one_of(&["Recursive"], context, &path, field, problems);
}

/// Who has users of its own cannot have what belongs to the node.
pub(super) fn check_users(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    if spec["hostUsers"] != false {
        return;
    }
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, field) {
            problems.forbidden(path.field(shown), "when `hostUsers` is false");
        }
    }
}

/// Rules on one container.
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
    one_of(
        &["Default", "Unmasked"],
        context,
        &path,
        "procMount",
        problems,
    );
    if text(context, "procMount") == "Unmasked" && spec["hostUsers"] != false {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        problems.invalid(path.field("procMount"), "Unmasked", detail);
    }
    check_profiles(context, &path, problems);
    if context["allowPrivilegeEscalation"] == false && flag(context, "privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        problems.written(FieldErrorKind::Invalid, path, &shown(context), detail);
    }
}

/// The names that fields have inside the real server, which a client is shown, in their order.
const INSIDE: [&str; 12] = [
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
];

/// A context as a client is shown it. Of what is deeper, only capabilities have names of their own
/// here.
fn shown(context: &Value) -> String {
    let field = |inside: &str| {
        let outside = match inside {
            "SELinuxOptions" => "seLinuxOptions".to_owned(),
            _ => inside[..1].to_lowercase() + &inside[1..],
        };
        let value = &context[outside];
        if inside == "Capabilities" && value.is_object() {
            let (add, drop) = (&value["add"], &value["drop"]);
            return format!(r#""Capabilities":{{"Add":{add},"Drop":{drop}}}"#);
        }
        format!(r#""{inside}":{value}"#)
    };
    format!("{{{}}}", INSIDE.map(field).join(","))
}

/// Users and groups have numbers that every system can hold.
fn check_id(id: &Value, path: &Path<'_>, problems: &mut Problems) {
    let most = i64::from(i32::MAX);
    if let Some(id) = id.as_i64()
        && !(0..=most).contains(&id)
    {
        let detail = format!("must be between 0 and {most}, inclusive");
        problems.invalid(path, id, detail);
    }
}

fn check_profiles(context: &Value, path: &Path<'_>, problems: &mut Problems) {
    for (field, what) in [
        ("seccompProfile", "seccomp"),
        ("appArmorProfile", "AppArmor"),
    ] {
        if is_set(context, field) {
            check_profile(&context[field], (field, what), &path.field(field), problems);
        }
    }
}

fn check_profile(
    profile: &Value,
    (field, what): (&str, &str),
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let kind = text(profile, "type");
    let (place, file) = (
        path.field("localhostProfile"),
        text(profile, "localhostProfile"),
    );
    match kind {
        "" => {
            let detail = format!("type is required when {field} is set");
            problems.required(path.field("type"), detail);
        }
        "Localhost" if file.is_empty() => {
            let detail = format!("must be set when {what} type is Localhost");
            problems.required(place, detail);
        }
        "Localhost" if what == "seccomp" => check_inside(file, &place, problems),
        "Localhost" => {}
        _ => {
            if !file.is_empty() {
                let [kind, file] = [kind, file].map(|text| json!(text));
                let shown = format!(r#"{{"Type":{kind},"LocalhostProfile":{file}}}"#);
                let detail = format!("can only be set when {what} type is Localhost");
                problems.written(FieldErrorKind::Invalid, place, &shown, &detail);
            }
            one_of(&PROFILES, profile, path, "type", problems);
        }
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

/// Names of settings of the kernel: words with dots or slashes between them.
fn is_sysctl(name: &str) -> bool {
    let alone = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let word = |word: &str| {
        word.starts_with(alone)
            && word.ends_with(alone)
            && word.chars().all(|c| alone(c) || c == '-' || c == '_')
    };
    name.len() <= 253 && name.split(['.', '/']).all(word)
}
