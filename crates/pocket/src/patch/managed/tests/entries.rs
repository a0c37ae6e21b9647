//! The list of entries.

use super::*;

#[test]
fn apply_entries_come_first_then_by_time_and_name() {
    let entry = |manager: &str, operation: &str, time: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}})
    };
    let sorted = json!([
        entry("z", "Apply", "2026-01-01T00:00:00Z"),
        entry("a", "Apply", "2026-01-02T00:00:00Z"),
        entry("a", "Update", "2026-01-01T00:00:00Z"),
        entry("b", "Update", "2026-01-01T00:00:00Z"),
    ]);
    let mut shuffled = sorted.as_array().unwrap().clone();
    shuffled.reverse();
    shuffled.swap(0, 2);
    let managers = Managers::decode(&Value::Array(shuffled)).unwrap();
    assert_eq!(managers.encode(), sorted);
}

#[test]
fn broken_entries_are_refused() {
    let good = json!({"manager": "m", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
    assert!(Managers::decode(&json!([good])).is_ok());
    for (field, value) in [
        ("operation", json!("Delete")),
        ("apiVersion", json!("")),
        ("fieldsType", json!("FieldsV2")),
        ("fieldsV1", json!({"f:a": []})),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(Managers::decode(&json!([bad])).is_err(), "{field}");
    }
    assert!(Managers::decode(&json!({})).is_err());
    assert!(Managers::decode(&json!(["x"])).is_err());
}

#[test]
fn the_oldest_updaters_are_joined_when_there_are_too_many() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({}));
    let mut data = serde_json::Map::new();
    for n in 0..14 {
        data.insert(format!("k{n:02}"), json!("v"));
        let mut new = live.clone();
        new["data"] = Value::Object(data.clone());
        let (manager, time) = (
            format!("m{n:02}"),
            format!("2026-01-{:02}T00:00:00Z", n + 1),
        );
        let stamp = Stamp {
            manager: &manager,
            time: &time,
            ..stamp("", "")
        };
        let before = (n > 0).then_some(&live);
        track_update(schema, before, &mut new, &stamp);
        live = new;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-05T00:00:00Z");
    assert_eq!(
        owned(&live, "ancient-changes"),
        json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}}})
    );
    assert_eq!(owned(&live, "m05"), json!({"f:data": {"f:k05": {}}}));
}

#[test]
fn the_last_of_two_entries_of_one_owner_stays() {
    let entry = |operation: &str, version: &str, field: &str| {
        json!({"manager": "m", "operation": operation, "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": {field: {}}})
    };
    let applied = json!([entry("Apply", "v1", "f:a"), entry("Apply", "v2", "f:b")]);
    let kept = Managers::decode(&applied).unwrap().encode();
    assert_eq!(kept, json!([entry("Apply", "v2", "f:b")]));
    let updated = json!([entry("Update", "v1", "f:a"), entry("Update", "v2", "f:b")]);
    assert_eq!(Managers::decode(&updated).unwrap().encode(), updated);
}
