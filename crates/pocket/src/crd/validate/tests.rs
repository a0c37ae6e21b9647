use serde_json::json;

use super::*;
use crate::crd::compile::compile;

fn spec(properties: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn problems(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let compiled = compile(schema, false);
    let mut problems = Problems::new();
    validate(compiled.root(), new, old, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_limit_speaks_in_the_servers_words() {
    let schema = spec(&json!({
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "open": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
        "even": {"type": "integer", "multipleOf": 2},
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        "map": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "null": {"type": "string", "nullable": true},
        "int32": {"type": "integer", "format": "int32"},
        "int64": {"type": "integer", "format": "int64"},
        "float": {"type": "number", "format": "float"},
    }));
    for (field, value, expected) in [
        (
            "size",
            json!("big"),
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ),
        (
            "size",
            json!(0),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            "size",
            json!(6),
            "spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5",
        ),
        (
            "open",
            json!(0),
            "spec.open: Invalid value: 0: spec.open in body should be greater than 0",
        ),
        (
            "even",
            json!(3),
            "spec.even: Invalid value: 3: spec.even in body should be a multiple of 2",
        ),
        (
            "name",
            json!("a"),
            r#"spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long"#,
        ),
        (
            "name",
            json!("abcde"),
            "spec.name: Too long: may not be more than 4 bytes",
        ),
        (
            "name",
            json!("ABCDE"),
            "spec.name: Too long: may not be more than 4 bytes",
        ),
        (
            "name",
            json!("AB"),
            r#"spec.name: Invalid value: "AB": spec.name in body should match '^[a-z]+$'"#,
        ),
        (
            "mode",
            json!("c"),
            r#"spec.mode: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            "flag",
            json!(1),
            r#"spec.flag: Invalid value: "integer": spec.flag in body must be of type boolean: "integer""#,
        ),
        (
            "list",
            json!([]),
            "spec.list: Invalid value: 0: spec.list in body should have at least 1 items",
        ),
        (
            "list",
            json!([1, 2, 3]),
            "spec.list: Too many: 3: must have at most 2 items",
        ),
        (
            "list",
            json!([1, "x"]),
            r#"spec.list[1]: Invalid value: "string": spec.list[1] in body must be of type integer: "string""#,
        ),
        (
            "map",
            json!({"a": 1}),
            r#"spec.map.a: Invalid value: "integer": spec.map.a in body must be of type string: "integer""#,
        ),
        (
            "map",
            json!({"a": "1", "b": "2"}),
            "spec.map: Too many: 2: must have at most 1 item",
        ),
        (
            "port",
            json!(1.5),
            r#"spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number""#,
        ),
        (
            "when",
            json!("soon"),
            r#"spec.when: Invalid value: "soon": spec.when in body must be of type date-time: "soon""#,
        ),
        (
            "int32",
            json!(3_000_000_000_u32),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.int32"#,
        ),
        (
            "float",
            json!(1e300),
            r#"<nil>: Invalid value: "": Checked value must be of type number with format float in spec.float"#,
        ),
        (
            "set",
            json!(["a", "a", "a"]),
            r#"spec.set[1]: Duplicate value: "a""#,
        ),
    ] {
        let mut object = json!({"spec": {}});
        object["spec"][field] = value;
        assert_eq!(problems(&schema, &object, None), [expected]);
    }
    let good = json!({"spec": {"size": 2.0, "open": 0.1, "even": 4, "name": "abc", "mode": "a",
        "flag": true, "list": [1], "map": {"a": "b"}, "port": "http", "set": ["a", "b"], "null": null, "int32": -5, "int64": i64::MAX, "float": 0.1}});
    assert_eq!(problems(&schema, &good, None), Vec::<String>::new());
}

#[test]
fn a_number_that_is_no_integer_is_refused() {
    let schema = spec(&json!({
        "plain": {"type": "integer", "maximum": 1},
        "int32": {"type": "integer", "format": "int32"},
        "int64": {"type": "integer", "format": "int64"},
    }));
    for (field, value, expected) in [
        (
            "plain",
            json!(1.5),
            &[
                r#"spec.plain: Invalid value: "number": spec.plain in body must be of type integer: "number""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.plain"#,
                "spec.plain: Invalid value: 1.5: spec.plain in body should be less than or equal to 1",
            ][..],
        ),
        (
            "plain",
            json!(-9.2e18),
            &[
                r#"spec.plain: Invalid value: "number": spec.plain in body must be of type integer: "number""#,
            ],
        ),
        (
            "int32",
            json!(1.5),
            &[
                r#"spec.int32: Invalid value: "float64": spec.int32 in body must be of type int32: "float64""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.int32"#,
            ],
        ),
        (
            "int64",
            json!(u64::MAX),
            &[
                r#"spec.int64: Invalid value: "float64": spec.int64 in body must be of type int64: "float64""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.int64"#,
            ],
        ),
    ] {
        let mut object = json!({"spec": {}});
        object["spec"][field] = value;
        assert_eq!(problems(&schema, &object, None), expected);
    }
}

#[test]
fn required_fields_are_named() {
    let schema = json!({"type": "object", "required": ["spec"],
        "properties": {"spec": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}});
    assert_eq!(
        problems(&schema, &json!({}), None),
        ["spec: Required value"]
    );
    let given = json!({"spec": {}});
    assert_eq!(problems(&schema, &given, None), ["spec.a: Required value"]);
}

#[test]
fn junctions_name_no_field() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}});
    assert_eq!(
        problems(&schema, &json!({"spec": {}}), None),
        [
            "spec.a: Required value",
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#
        ]
    );
    assert_eq!(
        problems(&schema, &json!({"spec": {"a": "", "b": ""}}), None),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert!(problems(&schema, &json!({"spec": {"b": ""}}), None).is_empty());
}

#[test]
fn any_all_and_not_hold_together() {
    let schema = spec(&json!({"n": {"type": "integer",
        "anyOf": [{"minimum": 10}, {"maximum": 3}],
        "allOf": [{"minimum": 0}],
        "not": {"enum": [2]}}}));
    for (n, count) in [(1, 0), (12, 0), (5, 2), (2, 1), (-1, 2)] {
        let found = problems(&schema, &json!({"spec": {"n": n}}), None);
        assert_eq!(found.len(), count, "{n}: {found:?}");
    }
}

#[test]
fn of_several_branches_the_one_about_numbers_speaks_of_a_number() {
    let either = json!([{"type": "string"}, {"type": "integer"}]);
    let schema = spec(&json!({"n": {"x-kubernetes-int-or-string": true, "anyOf": either}}));
    for (n, expected) in [
        (json!(1.5), "must be of type integer: \"number\""),
        (json!(true), "must be of type string: \"boolean\""),
    ] {
        let told = problems(&schema, &json!({"spec": {"n": n}}), None).join(", ");
        assert!(told.contains(expected), "{n}: {told}");
    }
}

#[test]
fn sets_and_map_lists_are_unique_unless_they_were_not() {
    let port = json!({"type": "object", "properties": {"port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"}}});
    let schema = spec(&json!({
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }));
    let ports = |ports: Value| json!({"spec": {"ports": ports}});
    let twice = ports(json!([{"port": 1}, {"port": 1}]));
    let told = "spec.ports[1]: Duplicate value: {\"port\":1}";
    let set = json!({"spec": {"set": ["a", "a"]}});
    for (new, old, expected) in [
        (&twice, None, vec![told]),
        // A violation in the old object tolerates all violations.
        (&twice, Some(&set), vec![]),
        (
            &twice,
            Some(&ports(json!([{"port": 1}, {"port": 2}]))),
            vec![told],
        ),
        // A repeated key is reported once.
        (
            &ports(json!([{"port": 1}, {"port": 1}, {"port": 1}])),
            None,
            vec![told],
        ),
        (
            &ports(json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "TCP"}])),
            None,
            vec!["spec.ports[1]: Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}"],
        ),
        // Defaults were filled in before, or the key is unknown.
        (
            &ports(json!([{"port": 1}, {"port": 1, "protocol": "TCP"}])),
            None,
            vec![],
        ),
        (
            &set,
            Some(&ports(json!([]))),
            vec!["spec.set[1]: Duplicate value: \"a\""],
        ),
    ] {
        assert_eq!(problems(&schema, new, old), expected, "{new} {old:?}");
    }
}

#[test]
fn unchanged_invalid_values_are_tolerated_on_update() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["must"], "properties": {
        "must": {"type": "string"},
        "size": {"type": "integer", "minimum": 1},
        "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        "plain": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "minimum": 1}}}},
    }}}});
    for (old, new, expected) in [
        (
            json!({"must": "a", "size": 0}),
            json!({"must": "b", "size": 0}),
            vec![],
        ),
        (
            json!({"must": "a", "size": 0}),
            json!({"must": "a", "size": -1}),
            vec!["spec.size"],
        ),
        (
            json!({"must": "a", "map": {"x": 0}}),
            json!({"must": "b", "map": {"x": 0, "y": 0}}),
            vec!["spec.map.y"],
        ),
        (json!({"size": 0}), json!({"size": 0}), vec![]),
        (json!({"size": 0}), json!({"size": 2}), vec!["spec.must"]),
        (
            json!({"must": "a", "plain": [0]}),
            json!({"must": "b", "plain": [0]}),
            vec![],
        ),
        (
            json!({"must": "a", "plain": [0]}),
            json!({"must": "b", "plain": [0, 1]}),
            vec!["spec.plain[0]"],
        ),
        (
            json!({"must": "a", "keyed": [{"name": "x", "n": 0}]}),
            json!({"must": "a", "keyed": [{"name": "y", "n": 1}, {"name": "x", "n": 0}]}),
            vec![],
        ),
        (
            json!({"must": "a", "keyed": [{"name": "x", "n": 0}]}),
            json!({"must": "a", "keyed": [{"name": "y", "n": 0}]}),
            vec!["spec.keyed[0].n"],
        ),
    ] {
        let (old, new) = (json!({"spec": old}), json!({"spec": new}));
        let found = problems(&schema, &new, Some(&old));
        let paths: Vec<&str> = found.iter().filter_map(|f| f.split(": ").next()).collect();
        assert_eq!(paths, expected, "{new}");
    }
}

#[test]
fn an_embedded_resource_says_what_it_is() {
    let schema = json!({"type": "object", "properties": {"template": {"type": "object",
        "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}});
    assert_eq!(
        problems(&schema, &json!({"template": {"kind": ""}}), None),
        [
            "template.apiVersion: Required value",
            "template.kind: Invalid value: \"\": must not be empty"
        ]
    );
}

#[test]
fn only_the_name_in_metadata_is_the_schemas_business() {
    let schema = json!({"type": "object", "properties": {"metadata": {"type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}}}}});
    let object =
        json!({"metadata": {"name": "long-name", "creationTimestamp": null, "labels": {"a": 1}}});
    assert_eq!(
        problems(&schema, &object, None),
        ["metadata.name: Too long: may not be more than 3 bytes"]
    );
}

#[test]
fn a_whole_number_is_measured_with_a_whole_step() {
    let schema = spec(&json!({"ratio": {"type": "number", "multipleOf": 0.25, "maximum": 1}}));
    let step = "spec.ratio: Invalid value: 0: factor MultipleOf declared for spec.ratio must be positive: 0";
    let most = |n: &str| {
        format!(
            "spec.ratio: Invalid value: {n}: spec.ratio in body should be less than or equal to 1"
        )
    };
    for (ratio, expected) in [
        (json!(1), vec![step.to_owned()]),
        (json!(4), vec![step.to_owned(), most("4")]),
        (json!(1.0), vec![]),
        (json!(2.0), vec![most("2")]),
        (json!(0.5), vec![]),
    ] {
        let found = problems(&schema, &json!({"spec": {"ratio": ratio}}), None);
        assert_eq!(found, expected, "{ratio}");
    }
}
