//! The rows that kubectl users see, kind by kind.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod kinds;
mod pods;

fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// The object with a name and an age of three hours.
fn born(mut object: Value) -> Value {
    let metadata = json!({"name": "x", "creationTimestamp": "2026-05-01T09:00:00Z"});
    let given = object["metadata"].take();
    object["metadata"] = metadata;
    for (key, value) in given.as_object().into_iter().flatten() {
        object["metadata"][key] = value.clone();
    }
    object
}

fn cells(resource: &str, object: Value) -> Vec<Value> {
    let (place, plural) = resource.rsplit_once('/').unwrap();
    let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
    Printer::builtin(group, version, plural).cells(&born(object), now())
}

/// The cells as kubectl shows them, without the first.
fn shown(resource: &str, object: Value) -> String {
    let show = |cell: Value| match cell {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let cells = cells(resource, object).into_iter().skip(1).map(show);
    cells.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_has_a_cell_for_every_column() {
    assert!(columns::all().len() > 40);
    for (resource, columns) in columns::all() {
        let (place, plural) = resource.rsplit_once('/').unwrap();
        let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
        let printer = Printer::builtin(group, version, plural);
        assert_eq!(printer.columns(), columns.as_slice(), "{resource}");
        let cells = printer.cells(&json!({}), now());
        assert_eq!(cells.len(), columns.len(), "{resource}");
    }
}

#[test]
fn a_kind_without_columns_prints_name_and_age() {
    assert_eq!(shown("tide.dev/v1/boats", json!({})), "3h");
}

fn column(kind: &str, key: &'static str) -> Column {
    Column {
        definition: ColumnDefinition {
            name: key.into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
        },
        path: Box::new(move |object| object["spec"].get(key).cloned()),
    }
}

#[test]
fn custom_columns_follow_their_declared_types() {
    let printer = Printer::custom(vec![
        column("string", "a"),
        column("string", "b"),
        column("integer", "c"),
        column("integer", "d"),
        column("boolean", "e"),
        column("date", "f"),
        column("number", "g"),
        column("string", "missing"),
    ]);
    let object = born(
        json!({"spec": {"a": "t", "b": [1], "c": 2.0, "d": "two", "e": "true",
        "f": "2026-05-01T11:00:00Z", "g": 1.5}}),
    );
    let cells = printer.cells(&object, now());
    assert_eq!(
        cells,
        json!(["x", "t", "[1]", 2, null, null, "60m", 1.5, null])
            .as_array()
            .unwrap()
            .as_slice()
    );
    assert_eq!(printer.columns().len(), cells.len());
}

#[test]
fn a_table_carries_columns_rows_and_what_was_asked_for() {
    let printer = Printer::builtin("", "v1", "configmaps");
    let object = born(json!({"kind": "ConfigMap", "data": {}}));
    let metadata = json!({"resourceVersion": "7"});
    let table = printer.table([&object], now(), Include::default(), metadata.clone(), true);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"], metadata);
    assert_eq!(table["columnDefinitions"][1]["name"], "Data");
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"], json!(["x", 0, "3h"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "x");

    let watched = printer.table([&object], now(), Include::None, json!({}), false);
    assert_eq!(watched.get("columnDefinitions"), Some(&Value::Null));
    assert_eq!(watched["rows"][0].get("object"), Some(&Value::Null));
    assert_eq!(
        printer.row(&object, now(), Include::Object)["object"],
        object
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "conditions",
        "containers",
        "containerStatuses",
        "state",
        "terminated",
        "ports",
        "subsets",
        "addresses",
        "metrics",
        "template",
        "type",
        "kind",
        "subjects",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z/]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_however_strange_fails_to_print(object in any_json()) {
        for (resource, columns) in columns::all() {
            let (place, plural) = resource.rsplit_once('/').unwrap();
            let (group, version) = place.rsplit_once('/').unwrap_or(("", place));
            let printer = Printer::builtin(group, version, plural);
            prop_assert_eq!(printer.cells(&object, now()).len(), columns.len());
        }
    }
}
