//! Role, ClusterRole, RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1): their
//! validation. The module `access` decides what they allow.

use serde_json::Value;

use super::{
    NameRule, Rules, Traits,
    field_rules::obeys,
    fields::{each_mut, fill, is_set, list, part, set, text},
    label_selector, names,
    path::Path,
};
use crate::status::Problems;

const GROUP: &str = "rbac.authorization.k8s.io";

const TRAITS: Traits = Traits {
    checks_metadata_again: true,
    create_on_update: true,
    name: NameRule::PathSegment,
    status: false,
    ..Traits::USUAL
};

pub(super) const ROLE: Rules = Rules {
    default: default_rules,
    validate: |object, problems| validate_rules(object, true, problems),
    traits: TRAITS,
    ..Rules::SHAPE_ONLY
};

pub(super) const CLUSTER_ROLE: Rules = Rules {
    validate: |object, problems| {
        validate_rules(object, false, problems);
        validate_aggregation(object, problems);
    },
    ..ROLE
};

pub(super) const ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: |object, problems| validate_binding(object, true, problems),
    validate_update: |new, old, problems| {
        // A role reference is immutable: changing it would grant the subjects another role.
        if new["roleRef"] != old["roleRef"] {
            let said = |field: &str| new["roleRef"][field].as_str().unwrap_or_default();
            let shown = format!(
                "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
                said("apiGroup"),
                said("kind"),
                said("name")
            );
            problems.invalid_as("roleRef", &shown, "cannot change roleRef");
        }
    },
    ..ROLE
};

pub(super) const CLUSTER_ROLE_BINDING: Rules = Rules {
    validate: |object, problems| validate_binding(object, false, problems),
    ..ROLE_BINDING
};

/// Sets absent rules to null, as the API shows them.
fn default_rules(object: &mut Value) {
    if !is_set(object, "rules") {
        set(object, "rules", Value::Null);
    }
}

fn default_binding(object: &mut Value) {
    if let Some(role) = part(object, "roleRef") {
        fill(role, "apiGroup", GROUP);
    }
    for subject in each_mut(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    }
}

fn validate_rules(object: &Value, namespaced: bool, problems: &mut Problems) {
    let path = Path::At("rules");
    for (i, rule) in list(object, "rules").iter().enumerate() {
        validate_rule(rule, namespaced, &path.index(i), problems);
    }
}

fn validate_rule(rule: &Value, namespaced: bool, path: &Path<'_>, problems: &mut Problems) {
    if list(rule, "verbs").is_empty() {
        problems.required(path.field("verbs"), "verbs must contain at least one value");
    }
    let some = |key| !list(rule, key).is_empty();
    if some("nonResourceURLs") {
        let urls = rule["nonResourceURLs"].clone();
        let path = path.field("nonResourceURLs");
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            problems.invalid(path, urls.clone(), detail);
        }
        if some("apiGroups") || some("resources") || some("resourceNames") {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            problems.invalid(path, urls, detail);
        }
        return;
    }
    if !some("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        problems.required(path.field("apiGroups"), detail);
    }
    if !some("resources") {
        let detail = "resource rules must supply at least one resource";
        problems.required(path.field("resources"), detail);
    }
}

fn validate_aggregation(object: &Value, problems: &mut Problems) {
    if !is_set(object, "aggregationRule") {
        return;
    }
    let path = Path::At("aggregationRule.clusterRoleSelectors");
    let selectors = list(&object["aggregationRule"], "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        problems.required(path, detail);
    }
    for (i, selector) in selectors.iter().enumerate() {
        label_selector::validate(selector, &path.index(i), problems);
    }
}

fn validate_binding(object: &Value, namespaced: bool, problems: &mut Problems) {
    let role = &object["roleRef"];
    if is_set(object, "roleRef") {
        validate_role_ref(role, namespaced, problems);
    }
    let path = Path::At("subjects");
    for (i, subject) in list(object, "subjects").iter().enumerate() {
        validate_subject(subject, namespaced, &path.index(i), problems);
    }
}

fn validate_role_ref(role: &Value, namespaced: bool, problems: &mut Problems) {
    let path = Path::At("roleRef");
    let group = text(role, "apiGroup");
    if group != GROUP {
        problems.not_supported(path.field("apiGroup"), group, &[GROUP]);
    }
    let kinds: &[&str] = if namespaced {
        &["ClusterRole", "Role"]
    } else {
        &["ClusterRole"]
    };
    let kind = text(role, "kind");
    if !kind.is_empty() && !kinds.contains(&kind) {
        problems.not_supported(path.field("kind"), kind, kinds);
    }
    obeys(
        names::path_segment,
        text(role, "name"),
        &path.field("name"),
        problems,
    );
}

fn validate_subject(subject: &Value, namespaced: bool, path: &Path<'_>, problems: &mut Problems) {
    let (kind, name) = (text(subject, "kind"), text(subject, "name"));
    let group = text(subject, "apiGroup");
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                obeys(names::subdomain, name, &path.field("name"), problems);
            }
            if !group.is_empty() {
                problems.not_supported(path.field("apiGroup"), group, &[""]);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                problems.required(path.field("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                problems.not_supported(path.field("apiGroup"), group, &[GROUP]);
            }
        }
        // The schema reports a missing kind.
        "" => {}
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            problems.not_supported(path.field("kind"), other, &kinds);
        }
    }
}
