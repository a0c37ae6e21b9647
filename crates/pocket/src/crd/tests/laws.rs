use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    crd::{
        Definition, accept, compile::compile, default::default, definition, prune::prune,
        validate::validate,
    },
    status::Problems,
};

const NAMES: &[&str] = &["a", "b", "c", "d"];

/// Schemas with defaults, maps, lists and preserved parts, over few names so that objects meet them.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "x", "minLength": 1})),
        Just(json!({"type": "integer", "default": 3, "minimum": 1})),
        Just(json!({"type": "boolean", "nullable": true})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let properties =
            prop::collection::btree_map(prop::sample::select(NAMES), inner.clone(), 0..4);
        prop_oneof![
            (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, keep, given)| {
                let mut schema = json!({"type": "object", "properties": properties});
                if keep {
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
                if given {
                    schema["default"] = json!({});
                }
                schema
            }),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..5).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(prop::sample::select(NAMES), inner, 0..4).prop_map(
                |fields| {
                    let fields = fields.into_iter().map(|(k, v)| (k.to_owned(), v));
                    Value::Object(fields.collect::<Map<_, _>>())
                }
            ),
        ]
    })
}

fn whole(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

/// A value that fits the schema, or null where the schema wants no value at all.
fn fitting(schema: &Value, full: bool) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!("x"),
        Some("boolean") => json!(true),
        Some("array") => json!([fitting(&schema["items"], full)]),
        Some("object") if schema.get("additionalProperties").is_some() => {
            json!({"k": fitting(&schema["additionalProperties"], full)})
        }
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let fields = properties
                .filter(|_| full)
                .map(|(name, property)| (name.clone(), fitting(property, full)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        // An integer, an int-or-string, or anything at all.
        _ => json!(1),
    }
}

/// A definition with one of its parts replaced.
fn broken_definition() -> impl Strategy<Value = Value> {
    let parts = prop::sample::select(vec![
        "/spec",
        "/spec/names",
        "/spec/names/kind",
        "/spec/conversion",
        "/spec/versions",
        "/spec/versions/0",
        "/spec/versions/0/schema",
        "/spec/versions/0/schema/openAPIV3Schema",
        "/spec/versions/0/schema/openAPIV3Schema/properties",
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "/spec/versions/0/subresources",
        "/spec/versions/0/additionalPrinterColumns",
        "/spec/versions/0/selectableFields",
        "/status",
        "/status/conditions",
        "/metadata",
    ]);
    (schema(), parts, value()).prop_map(|(schema, part, value)| {
        let mut object = json!({"metadata": {"name": "a.b.c"}, "status": {"conditions": [], "storedVersions": ["v1"]}, "spec": {
            "group": "b.c", "scope": "Cluster", "names": {"plural": "a", "kind": "A"}, "conversion": {},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [], "selectableFields": [],
                "schema": {"openAPIV3Schema": whole(&schema)}}]}});
        if let Some(place) = object.pointer_mut(part) {
            *place = value;
        }
        object
    })
}

proptest! {
    #[test]
    fn no_definition_makes_review_fail_badly(mut object in broken_definition(), other in broken_definition()) {
        definition::default(&mut object);
        let once = object.clone();
        definition::default(&mut object);
        prop_assert_eq!(&once, &object);
        let mut problems = Problems::new();
        definition::validate(&object, &mut problems);
        definition::validate_update(&object, &other, &mut problems);
        accept(&mut object, "2024-01-01T00:00:00Z", None);
        Definition::read(&object);
    }

    #[test]
    fn pruning_twice_is_pruning_once(schema in schema(), value in value()) {
        let compiled = compile(&whole(&schema), false);
        let mut once = json!({"spec": value, "stray": 1});
        let dropped = prune(compiled.root(), &mut once);
        prop_assert!(dropped.contains(&"stray".to_owned()));
        let mut twice = once.clone();
        prop_assert!(prune(compiled.root(), &mut twice).is_empty());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in schema(), value in value()) {
        let compiled = compile(&whole(&schema), false);
        let mut once = json!({"spec": value});
        default(compiled.root(), &mut once);
        let mut twice = once.clone();
        default(compiled.root(), &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaults_are_never_pruned(schema in schema(), value in value()) {
        let compiled = compile(&whole(&schema), false);
        let mut object = json!({"spec": value});
        prune(compiled.root(), &mut object);
        default(compiled.root(), &mut object);
        let mut again = object.clone();
        prop_assert!(prune(compiled.root(), &mut again).is_empty());
    }

    #[test]
    fn what_keeps_the_schema_is_valid_after_defaulting_and_pruning(schema in schema(), full in any::<bool>()) {
        let compiled = compile(&whole(&schema), false);
        let mut object = json!({"spec": fitting(&schema, full)});
        prop_assert!(prune(compiled.root(), &mut object).is_empty());
        default(compiled.root(), &mut object);
        let mut problems = Problems::new();
        validate(compiled.root(), &object, None, &mut problems);
        prop_assert!(problems.is_empty(), "{}", problems);
    }

    #[test]
    fn an_unchanged_object_is_never_refused(schema in schema(), value in value()) {
        let compiled = compile(&whole(&schema), false);
        let object = json!({"spec": value});
        let mut problems = Problems::new();
        validate(compiled.root(), &object, Some(&object), &mut problems);
        prop_assert!(problems.is_empty(), "{}", problems);
    }
}
