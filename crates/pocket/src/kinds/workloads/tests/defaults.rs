//! The stored form of minimal objects, compared with what kube-apiserver stored.

use super::*;

const CASES: &str = include_str!("../../../../tests/data/defaults-apps.json");

fn cases() -> Vec<Value> {
    serde_json::from_str(CASES).unwrap()
}

/// The sent object with what the REST machine adds before the rules run.
fn received(case: &Value) -> Value {
    let mut object = case["sent"].clone();
    let stored = &case["stored"];
    object["apiVersion"] = stored["apiVersion"].clone();
    if let Some(namespace) = stored["metadata"].get("namespace") {
        object["metadata"]["namespace"] = namespace.clone();
    }
    object
}

#[test]
fn minimal_objects_are_stored_as_the_real_server_stores_them() {
    for case in cases() {
        let plural = case["plural"].as_str().unwrap();
        let mut object = created(plural, &received(&case));
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("uid");
        let mut stored = case["stored"].clone();
        if rules(plural).traits.generation {
            assert_eq!(stored["metadata"]["generation"], json!(1), "{plural}");
            stored["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("generation");
        }
        assert_eq!(object, stored, "{plural}");
    }
}

#[test]
fn stored_objects_are_valid_and_defaults_add_nothing_to_them() {
    for case in cases() {
        let plural = case["plural"].as_str().unwrap();
        let mut object = case["stored"].clone();
        object["metadata"]["uid"] = json!(UID);
        let before = object.clone();
        (rules(plural).default)(&mut object);
        assert_eq!(object, before, "{plural}");
        let mut problems = Problems::new();
        (rules(plural).validate)(&object, &mut problems);
        assert_eq!(texts(&problems), [""; 0], "{plural}");
    }
}

#[test]
fn a_status_sent_by_a_client_does_not_survive_a_create() {
    for case in cases() {
        let plural = case["plural"].as_str().unwrap();
        if !rules(plural).traits.status {
            continue;
        }
        let mut object = received(&case);
        object["status"] = json!({"replicas": 99});
        assert_eq!(
            created(plural, &object)["status"],
            case["stored"]["status"],
            "{plural}"
        );
    }
}
