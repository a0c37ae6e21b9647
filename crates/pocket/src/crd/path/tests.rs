use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {"labels": {"a.b": "1", "plain": "2"}},
        "spec": {"replicas": 3, "items": [{"n": 1}, {"n": 2}, {"n": 3}], "names": ["x", "y"]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "weight": 5},
            {"type": "Failed", "status": "False", "weight": 1, "same": "Failed"},
        ]},
    })
}

#[test]
fn paths_lead_where_they_say() {
    for (path, expected) in [
        (".spec.replicas", json!([3])),
        ("{.spec.replicas}", json!([3])),
        ("$.spec.replicas", json!([3])),
        (".metadata.labels['a.b']", json!(["1"])),
        (r".metadata.labels.a\.b", json!(["1"])),
        (r#".metadata.labels["plain"]"#, json!(["2"])),
        (".spec.items[0].n", json!([1])),
        (".spec.items[-1].n", json!([3])),
        (".spec.items[7].n", json!([])),
        (".spec.items[*].n", json!([1, 2, 3])),
        (".spec.names.*", json!(["x", "y"])),
        (
            r#".status.conditions[?(@.type=="Ready")].status"#,
            json!(["True"]),
        ),
        (
            ".status.conditions[?(@.type == 'Failed')].status",
            json!(["False"]),
        ),
        (".status.conditions[?(@.weight>2)].type", json!(["Ready"])),
        (".status.conditions[?(@.weight<=1)].type", json!(["Failed"])),
        (".status.conditions[?(@.same)].type", json!(["Failed"])),
        (
            ".status.conditions[?(@.type==@.same)].type",
            json!(["Failed"]),
        ),
        (
            ".status.conditions[?(@.type!='Ready')].type",
            json!(["Failed"]),
        ),
        (".spec.absent.deeper", json!([])),
        (".", json!([object()])),
    ] {
        let found: Vec<Value> = JsonPath::parse(path)
            .unwrap()
            .find(&object())
            .into_iter()
            .cloned()
            .collect();
        assert_eq!(Value::Array(found), expected, "{path}");
    }
}

#[test]
fn unreadable_paths_are_refused() {
    for path in [
        "spec",
        ".spec.",
        ".spec[",
        ".spec[x]",
        ".spec['x]",
        "..spec",
        ".spec..x",
        ".spec[?(@.a==)]",
        ".spec[?(.a==1)]",
        ".spec{",
        ".spec\\",
    ] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

#[test]
fn fields_are_known_only_of_plain_paths() {
    let plain = JsonPath::parse(".spec.a").unwrap();
    assert_eq!(plain.fields(), Some(vec!["spec", "a"]));
    assert_eq!(JsonPath::parse(".spec[0]").unwrap().fields(), None);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_fail_badly(text in r#"[.\[\]'"a?@()*=<\\ {}0-9é-]{0,24}"#) {
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&object());
        }
    }
}
