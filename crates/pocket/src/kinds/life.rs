//! The lifecycle of namespaces and definitions, which differs from that of other kinds.

use serde_json::{Value, json};

use super::{KindRole, Settings, reviews, service::first_address};
use crate::crd;

/// The bucket of namespaces in the store.
pub const NAMESPACES: &str = "/namespaces";
/// The bucket of definitions in the store.
pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Keeps a deleted definition until its objects are removed.
pub const DEFINITION_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Keeps a deleted namespace until it is empty.
const NAMESPACE_FINALIZER: &str = "kubernetes";
/// Namespaces that cannot be deleted.
const UNDELETABLE_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The namespaces that exist from the start.
pub const FIRST_NAMESPACES: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The objects that every namespace has: bucket and name.
pub const STANDARD_OBJECTS: [(&str, &str); 2] = [
    ("/serviceaccounts", "default"),
    ("/configmaps", "kube-root-ca.crt"),
];

/// A new standard object; `None` if there is no content for it.
pub fn standard_object(bucket: &str, root_ca: Option<&str>) -> Option<Value> {
    match bucket {
        "/serviceaccounts" => Some(json!({"metadata": {"name": "default"}})),
        "/configmaps" => Some(json!({
            "metadata": {
                "name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": "The certificate authority that signed this server's certificate."},
            },
            "data": {"ca.crt": root_ca?},
        })),
        _ => None,
    }
}

/// The Service under which clients inside the cluster find this server. It has the first address of
/// the range, which such clients may rely on.
pub fn own_service(port: u16, settings: &Settings) -> Value {
    let address = first_address(settings.service_range);
    json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address.to_string(),
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    })
}

impl KindRole {
    /// The role of a resource.
    pub fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "namespaces") => Self::Namespace,
            ("apiextensions.k8s.io", "customresourcedefinitions") => Self::Definition,
            ("scheduling.k8s.io", "priorityclasses") => Self::PriorityClass,
            ("" | "events.k8s.io", "events") => Self::Event,
            _ if reviews::is_answered(group, plural) => Self::Review,
            _ => Self::Ordinary,
        }
    }

    /// Refuses the deletion of objects that must stay.
    pub fn may_delete(self, value: &Value) -> Result<(), &'static str> {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if self == Self::Namespace && UNDELETABLE_NAMESPACES.contains(&name) {
            return Err("this namespace may not be deleted");
        }
        if self == Self::PriorityClass && name.starts_with("system-") {
            return Err("this is a system priority class and cannot be deleted");
        }
        Ok(())
    }

    /// Marks an object that is deleted and cannot be removed at once.
    pub fn begin_removal(self, value: &mut Value, now: &str) {
        if value["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        match self {
            Self::Namespace => value["status"]["phase"] = json!("Terminating"),
            Self::Definition => {
                add_finalizer(value, DEFINITION_FINALIZER);
                crd::begin_removal(value, now);
            }
            _ => {}
        }
    }

    /// Restores grace period and generation of a deleted namespace or definition: they have no
    /// deadline, and their deletion does not count as a change.
    pub fn without_grace(self, new: &mut Value, old: &Value) {
        if !matches!(self, Self::Namespace | Self::Definition) {
            return;
        }
        if let Some(metadata) = new["metadata"].as_object_mut() {
            metadata.remove("deletionGracePeriodSeconds");
            for field in ["deletionGracePeriodSeconds", "generation"] {
                if let Some(kept) = old["metadata"].get(field) {
                    metadata.insert(field.into(), kept.clone());
                }
            }
        }
    }

    /// Whether no kind-specific finalizer keeps a deleted object.
    pub fn nothing_left(self, value: &Value) -> bool {
        self != Self::Namespace
            || value["spec"]["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty)
    }
}

fn add_finalizer(value: &mut Value, name: &str) {
    let finalizers = &mut value["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(list) if list.iter().any(|finalizer| finalizer == name) => {}
        Some(list) => list.push(json!(name)),
        None => *finalizers = json!([name]),
    }
}

/// Removes the finalizer of an empty namespace.
pub fn end_namespace(value: &mut Value, now: &str) {
    set_conditions(value, "", "", now);
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    finalizers.retain(|finalizer| finalizer != NAMESPACE_FINALIZER);
    if finalizers.is_empty() {
        spec.remove("finalizers");
    }
}

/// Sets the conditions that say what a terminating namespace still waits for.
pub fn namespace_remains(value: &mut Value, content: &str, finalizers: &str, now: &str) {
    set_conditions(value, content, finalizers, now);
}

fn set_conditions(value: &mut Value, content: &str, finalizers: &str, now: &str) {
    let or = |text: &str, fallback: &str| {
        if text.is_empty() {
            fallback.to_owned()
        } else {
            text.to_owned()
        }
    };
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        (
            "NamespaceContentRemaining",
            !content.is_empty(),
            if content.is_empty() {
                "ContentRemoved"
            } else {
                "SomeResourcesRemain"
            },
            or(content, "All content successfully removed"),
        ),
        (
            "NamespaceFinalizersRemaining",
            !finalizers.is_empty(),
            if finalizers.is_empty() {
                "ContentHasNoFinalizers"
            } else {
                "SomeFinalizersRemain"
            },
            or(finalizers, "All content-preserving finalizers finished"),
        ),
    ];
    let conditions: Vec<Value> = rows
        .into_iter()
        .map(|(kind, holds, reason, message)| {
            let status = if holds { "True" } else { "False" };
            let since = since(value, kind, status).unwrap_or_else(|| now.to_owned());
            json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
        })
        .collect();
    value["status"]["conditions"] = json!(conditions);
}

/// The transition time of a condition, if it has this status.
fn since(value: &Value, kind: &str, status: &str) -> Option<String> {
    let conditions = value["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind && condition["status"] == status)?;
    found["lastTransitionTime"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_stays_until_its_finalizer_is_gone() {
        let mut namespace = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {}});
        assert!(!KindRole::Namespace.nothing_left(&namespace));
        end_namespace(&mut namespace, "t");
        assert!(KindRole::Namespace.nothing_left(&namespace));
        assert_eq!(namespace["spec"], json!({}));
        let mut namespace = json!({"spec": {}, "status": {}});
        end_namespace(&mut namespace, "t");
        assert_eq!(namespace["spec"], json!({}));
    }

    #[test]
    fn the_end_of_a_namespace_leaves_its_grace_and_generation_as_they_were() {
        let ended = json!({"metadata": {"deletionGracePeriodSeconds": 0, "generation": 2}});
        for before in [
            json!({"generation": 1}),
            json!({"deletionGracePeriodSeconds": 7, "generation": 1}),
        ] {
            let mut namespace = ended.clone();
            KindRole::Namespace.without_grace(&mut namespace, &json!({"metadata": before}));
            assert_eq!(namespace["metadata"], before);
        }
        let mut other = ended.clone();
        KindRole::Ordinary.without_grace(&mut other, &json!({"metadata": {}}));
        assert_eq!(other, ended);
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut namespace = json!({"status": {}});
        namespace_remains(&mut namespace, "two pods", "", "t1");
        namespace_remains(&mut namespace, "one pod", "", "t2");
        let remaining = &namespace["status"]["conditions"][3];
        assert_eq!(
            (&remaining["lastTransitionTime"], &remaining["message"]),
            (&json!("t1"), &json!("one pod"))
        );
    }

    #[test]
    fn the_first_namespaces_cannot_be_deleted() {
        let of = |name: &str| json!({"metadata": {"name": name}});
        assert!(KindRole::Namespace.may_delete(&of("default")).is_err());
        assert!(
            KindRole::Namespace
                .may_delete(&of("kube-node-lease"))
                .is_ok()
        );
        assert!(KindRole::Ordinary.may_delete(&of("default")).is_ok());
    }
}
