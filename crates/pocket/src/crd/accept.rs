//! The status of a definition once its names are accepted or refused.

use serde_json::{Map, Value, json};

/// A name that another definition of the group has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameConflict {
    /// The reason of the condition: which of the names it is.
    pub reason: &'static str,
    /// The message of the condition.
    pub message: String,
}

/// Sets the condition that the objects of a definition are being removed.
pub fn begin_removal(object: &mut Value, now: &str) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let Some(status) = object["status"].as_object_mut() else {
        return;
    };
    let condition = [
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    ];
    set(status, condition, now);
}

/// Sets accepted names, stored versions and conditions. `conflict` says why the names are refused;
/// `now` is the time of conditions that change. An established definition stays established.
pub fn accept(object: &mut Value, now: &str, conflict: Option<&NameConflict>) {
    let names = object["spec"]["names"].clone();
    let storage = storage_version(&object["spec"]["versions"]);
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    let Some(status) = status.as_object_mut() else {
        return;
    };
    let accepted = conflict.is_none();
    if accepted {
        status.insert("acceptedNames".into(), names);
    } else {
        let unnamed = || json!({"kind": "", "plural": ""});
        status.entry("acceptedNames").or_insert_with(unnamed);
    }
    store(status, storage);
    set(
        status,
        match conflict {
            None => ["NamesAccepted", "True", "NoConflicts", "no conflicts found"],
            Some(conflict) => ["NamesAccepted", "False", conflict.reason, &conflict.message],
        },
        now,
    );
    let established = if accepted {
        [
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ]
    } else if holds(status, "Established") {
        return;
    } else {
        [
            "Established",
            "False",
            "NotAccepted",
            "not all names are accepted",
        ]
    };
    set(status, established, now);
}

/// The status of a definition before its names are accepted or refused.
pub fn propose(object: &mut Value) {
    let stored: Vec<Value> = storage_version(&object["spec"]["versions"])
        .into_iter()
        .collect();
    object["status"] = json!({
        "conditions": null,
        "acceptedNames": {"kind": "", "plural": ""},
        "storedVersions": stored,
    });
}

fn storage_version(versions: &Value) -> Option<Value> {
    let storage = versions.as_array()?.iter().find(|v| v["storage"] == true)?;
    Some(storage["name"].clone())
}

/// Versions are only ever added: objects may be stored in each of them.
fn store(status: &mut Map<String, Value>, version: Option<Value>) {
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let (Some(stored), Some(version)) = (stored.as_array_mut(), version)
        && !stored.contains(&version)
    {
        stored.push(version);
    }
}

fn holds(status: &Map<String, Value>, ty: &str) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == ty && c["status"] == "True")
}

/// Sets a condition; it keeps its transition time while its status stays the same.
fn set(status: &mut Map<String, Value>, [ty, is, reason, message]: [&str; 4], now: &str) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let old = conditions.iter().position(|c| c["type"] == ty);
    let since = old
        .map(|at| &conditions[at])
        .filter(|c| c["status"] == is)
        .and_then(|c| c["lastTransitionTime"].as_str())
        .unwrap_or(now);
    let condition = json!({"type": ty, "status": is, "lastTransitionTime": since, "reason": reason, "message": message});
    match old {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({"spec": {"names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "storage": true}]}})
    }

    #[test]
    fn accepted_names_make_an_established_definition() {
        let mut object = object();
        accept(&mut object, "2024-01-01T00:00:00Z", None);
        assert_eq!(
            object["status"],
            json!({
                "acceptedNames": {"plural": "widgets", "kind": "Widget"},
                "storedVersions": ["v1"],
                "conditions": [
                    {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z",
                        "reason": "NoConflicts", "message": "no conflicts found"},
                    {"type": "Established", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z",
                        "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
                ]
            })
        );
    }

    #[test]
    fn accepting_again_changes_nothing_but_adds_versions() {
        let mut object = object();
        accept(&mut object, "2024-01-01T00:00:00Z", None);
        let before = object.clone();
        accept(&mut object, "2025-01-01T00:00:00Z", None);
        assert_eq!(object, before);
        object["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
        accept(&mut object, "2025-01-01T00:00:00Z", None);
        assert_eq!(object["status"]["storedVersions"], json!(["v1", "v2"]));
    }

    #[test]
    fn a_conflict_is_not_established_unless_it_was() {
        let conflict = || {
            Some(NameConflict {
                reason: "KindConflict",
                message: "\"widgets\" is already in use".to_owned(),
            })
        };
        let mut fresh = object();
        accept(&mut fresh, "2024-01-01T00:00:00Z", conflict().as_ref());
        assert_eq!(fresh["status"]["conditions"][1]["status"], "False");
        assert_eq!(
            fresh["status"]["conditions"][0]["message"],
            "\"widgets\" is already in use"
        );
        let mut old = object();
        accept(&mut old, "2024-01-01T00:00:00Z", None);
        accept(&mut old, "2024-01-02T00:00:00Z", conflict().as_ref());
        assert_eq!(old["status"]["conditions"][0]["status"], "False");
        assert_eq!(old["status"]["conditions"][1]["status"], "True");
    }
}
