//! The roles and bindings that every server has from its start (the bootstrap policy), and how they
//! are reconciled.
//!
//! Missing ones are created. An existing one gets back the rules, subjects, labels and annotations
//! it lacks; additions by users stay, and an object whose annotation disables updates is left
//! alone.

use serde_json::{Map, Value, json};

use super::{
    CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, aggregated, rules_of, uncovered,
};

const DATA: &str = include_str!("../../data/rbac.json");
const LABEL: &str = "kubernetes.io/bootstrapping";
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// A role or binding of the bootstrap policy.
#[derive(Debug, Clone)]
pub struct BootstrapObject {
    /// Its bucket in the store.
    pub bucket: &'static str,
    /// The object, without `apiVersion` and `kind`.
    pub object: Value,
    /// The aggregated rules, for a role with an aggregation rule.
    pub gathered: Option<Value>,
}

impl BootstrapObject {
    /// Its namespace, empty if it is in none.
    pub fn namespace(&self) -> &str {
        self.object["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// The whole bootstrap policy, roles before bindings.
pub fn first() -> Vec<BootstrapObject> {
    // The file is generated and committed, and a test reads it: an unreadable one is empty here.
    let mut data: Value = serde_json::from_str(DATA).unwrap_or_default();
    let mut all = Vec::new();
    for (part, bucket) in [
        ("clusterroles", CLUSTER_ROLES),
        ("roles", ROLES),
        ("clusterrolebindings", CLUSTER_ROLE_BINDINGS),
        ("rolebindings", ROLE_BINDINGS),
    ] {
        let Value::Array(objects) = data[part].take() else {
            continue;
        };
        all.extend(objects.into_iter().map(|object| BootstrapObject {
            bucket,
            object: marked(object),
            gathered: None,
        }));
    }
    gather(&mut all);
    all
}

fn marked(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    metadata["labels"][LABEL] = json!("rbac-defaults");
    metadata["annotations"] = json!({AUTOUPDATE: "true"});
    object
}

/// Fills the rules of aggregating roles from others, which may aggregate too.
fn gather(all: &mut [BootstrapObject]) {
    let none = Map::new();
    loop {
        let roles = all.iter().filter(|first| first.bucket == CLUSTER_ROLES);
        let roles: Vec<_> = roles
            .map(|first| {
                let rules = first.gathered.as_ref().unwrap_or(&first.object["rules"]);
                let labels = first.object["metadata"]["labels"].as_object();
                (
                    first.name().to_owned(),
                    labels.unwrap_or(&none).clone(),
                    rules_of(rules),
                )
            })
            .collect();
        let mut changed = false;
        for first in all.iter_mut() {
            let selectors = &first.object["aggregationRule"]["clusterRoleSelectors"];
            let Some(selectors) = selectors.as_array() else {
                continue;
            };
            let others = roles.iter().filter(|(name, ..)| name != first.name());
            let others = others.map(|(_, labels, rules)| (labels, rules.as_slice()));
            let gathered = Some(json!(aggregated(selectors, &others)));
            changed |= first.gathered != gathered;
            first.gathered = gathered;
        }
        if !changed {
            return;
        }
    }
}

/// The stored object with what it lacks of `wanted` added; `None` if it lacks nothing or must not
/// be updated.
pub fn restored(stored: &Value, wanted: &Value) -> Option<Value> {
    if stored["metadata"]["annotations"][AUTOUPDATE] == "false" {
        return None;
    }
    let mut restored = stored.clone();
    for marks in ["labels", "annotations"] {
        add_entries(&mut restored["metadata"][marks], &wanted["metadata"][marks]);
    }
    if wanted["aggregationRule"].is_object() {
        let field = "/aggregationRule/clusterRoleSelectors";
        let missing = absent(stored.pointer(field), wanted.pointer(field));
        if !missing.is_empty() {
            append(
                &mut restored["aggregationRule"]["clusterRoleSelectors"],
                missing,
            );
        }
    } else {
        let missing = uncovered(&rules_of(&stored["rules"]), &rules_of(&wanted["rules"]));
        if !missing.is_empty() {
            let missing = missing.iter().map(|rule| json!(rule)).collect();
            append(&mut restored["rules"], missing);
        }
    }
    let missing = absent(stored.get("subjects"), wanted.get("subjects"));
    if !missing.is_empty() {
        append(&mut restored["subjects"], missing);
    }
    (restored != *stored).then_some(restored)
}

/// Whether a stored binding refers to another role than it should. A role reference is immutable,
/// so such a binding must be recreated.
pub fn refers_elsewhere(stored: &Value, wanted: &Value) -> bool {
    let role = |value: &Value| {
        (
            value["roleRef"]["kind"].clone(),
            value["roleRef"]["name"].clone(),
        )
    };
    stored["metadata"]["annotations"][AUTOUPDATE] != "false" && role(stored) != role(wanted)
}

fn add_entries(to: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        if to[key].is_null() {
            to[key] = value.clone();
        }
    }
}

/// The elements of `wanted` that `stored` lacks. Only the fields present in a wanted element are
/// compared.
fn absent(stored: Option<&Value>, wanted: Option<&Value>) -> Vec<Value> {
    let elements =
        |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let stored = elements(stored);
    let is_there = |wanted: &Value| {
        stored.iter().any(|element| {
            let mut fields = wanted.as_object().into_iter().flatten();
            fields.all(|(key, value)| element[key] == *value)
        })
    };
    let mut wanted = elements(wanted);
    wanted.retain(|element| !is_there(element));
    wanted
}

fn append(list: &mut Value, elements: Vec<Value>) {
    match list.as_array_mut() {
        Some(list) => list.extend(elements),
        None => *list = elements.into(),
    }
}
