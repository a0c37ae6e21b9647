//! The roles and bindings that every server has from its start, and how they are kept.
//!
//! They are made when they are missing. One that is there gets back what it lacks of its rules,
//! subjects and marks; what somebody added stays, and so does all of it if its annotation says
//! that it shall not be updated.

use serde_json::{Map, Value, json};

use super::{
    CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, aggregated, rules_of, uncovered,
};

const DATA: &str = include_str!("../../data/rbac.json");
const LABEL: &str = "kubernetes.io/bootstrapping";
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// An object that a server has from its start.
#[derive(Debug, Clone)]
pub struct First {
    /// Where it is stored.
    pub bucket: &'static str,
    /// The object, without `apiVersion` and `kind`.
    pub object: Value,
    /// The rules it takes from others, if it does.
    pub gathered: Option<Value>,
}

impl First {
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

/// Everything of this sort, roles before bindings.
pub fn first() -> Vec<First> {
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
        all.extend(objects.into_iter().map(|object| First {
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

/// Fills what aggregating roles take from others, which may aggregate too.
fn gather(all: &mut [First]) {
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

/// What a stored object lacks of what it should have: the whole object as it should be, `None` if
/// it lacks nothing or is to be left alone.
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

/// Whether a stored binding gives another role than it should; its role cannot be changed, so it
/// must be made anew.
pub fn is_misled(stored: &Value, wanted: &Value) -> bool {
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

/// The elements of `wanted` that `stored` has not. Only what is wanted of each is compared.
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
