//! Properties that hold for every kind and for any JSON, well-formed or not.

use proptest::prelude::*;

use super::{
    super::super::{enums::check_enums, required::check_required},
    *,
};
use crate::schema::{Schema, builtin};

const CASES: &str = include_str!("../../../../tests/data/defaults-apps.json");

/// Replaces the `nth` value inside `value`, counted in document order, with something else.
fn deface(value: &mut Value, nth: &mut usize, with: &Value) -> bool {
    if *nth == 0 {
        *value = with.clone();
        return true;
    }
    *nth -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| deface(item, nth, with)),
        Value::Object(map) => map.values_mut().any(|item| deface(item, nth, with)),
        _ => false,
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!("*/*")),
        Just(json!("120%")),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null, {"matchExpressions": [{}]}])),
    ]
}

/// The published schema of a case's kind.
fn schema(case: &Value) -> Schema<'static> {
    let version = case["stored"]["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap();
    let group = group.split('.').next().unwrap();
    let kind = case["stored"]["kind"].as_str().unwrap();
    builtin()
        .named(&format!("io.k8s.api.{group}.{version}.{kind}"))
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_shape_of_an_object_breaks_the_rules(
        case in any::<prop::sample::Index>(),
        places in prop::collection::vec((0usize..120, anything()), 1..4),
    ) {
        let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
        let case = case.get(&cases);
        let rules = rules(case["plural"].as_str().unwrap());
        let mut object = case["stored"].clone();
        for (mut nth, with) in places {
            // The whole object and its metadata are checked before any kind sees them.
            nth += 1;
            deface(&mut object, &mut nth, &with);
        }
        (rules.default)(&mut object);
        let once = object.clone();
        (rules.default)(&mut object);
        prop_assert_eq!(&object, &once);

        let mut problems = Problems::new();
        check_required(&object, schema(case), &mut problems);
        check_enums(&object, schema(case), &mut problems);
        (rules.validate)(&object, &mut problems);
        let mut errors = texts(&problems);
        errors.sort();
        let count = errors.len();
        errors.dedup();
        prop_assert_eq!(count, errors.len(), "the schema and the kind say the same: {}", problems);
        (rules.prepare_update)(&mut object, &case["stored"]);
        (rules.validate_update)(&object, &case["stored"], &mut problems);
        (rules.validate_status)(&object, &case["stored"], &mut problems);
        (rules.prepare_create)(&mut object, &moment());
    }
}

#[test]
fn an_unchanged_object_may_be_written_back() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    for case in cases {
        let plural = case["plural"].as_str().unwrap();
        let errors = refusals_of_change(plural, &case["sent"], |_| {});
        assert_eq!(errors, [""; 0], "{plural}");
        let old = created(plural, &case["sent"]);
        assert_eq!(updated(plural, &old, |_| {}), old, "{plural}");
    }
}

#[test]
fn every_row_is_a_resource_of_its_own() {
    let mut seen = std::collections::HashSet::new();
    for kind in workload_kinds() {
        assert!(seen.insert((kind.group, kind.plural)), "{kind:?}");
    }
}
