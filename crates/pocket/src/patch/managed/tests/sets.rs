//! Claims of values and the written form of sets.

use super::*;

#[test]
fn a_claim_names_parts_and_not_the_structs_around_them() {
    let claim = FieldSet::of_value(
        deployment_schema(),
        &json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["x/y", "a/b"], "generateName": "g-"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"a": "1"}},
                "strategy": {},
                "paused": null,
                "template": {"spec": {"containers": [{"name": "c", "args": [],
                    "ports": [{"containerPort": 80}], "volumeMounts": []}]}},
            },
        }),
    );
    assert_eq!(
        claim.into_fields_v1(),
        json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:generateName": {},
                "f:finalizers": {"v:\"a/b\"": {}, "v:\"x/y\"": {}}},
            "f:spec": {
                "f:replicas": {}, "f:selector": {}, "f:strategy": {}, "f:paused": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:name": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                        {".": {}, "f:containerPort": {}}},
                }}}},
            },
        })
    );
}

#[test]
fn where_no_schema_speaks_maps_have_parts_and_lists_are_one() {
    let mut set = Schemas::default();
    let anything = set.add(Node {
        ty: Type::Object,
        preserve_unknown: true,
        ..Node::default()
    });
    let claim = FieldSet::of_value(set.at(anything), &json!({"a": {"b": {"c": 1}, "l": [1]}}));
    assert_eq!(
        claim.into_fields_v1(),
        json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}, "f:l": {}}})
    );
}

#[test]
fn a_missing_key_takes_the_schemas_default_or_stays_out() {
    let mut set = Schemas::default();
    let text = |default| Node {
        ty: Type::String,
        default,
        ..Node::default()
    };
    let plain = set.add(text(None));
    let defaulted = set.add(text(Some(json!("x"))));
    let item = set.add(Node {
        ty: Type::Object,
        properties: [("a", plain), ("b", plain), ("d", defaulted)]
            .map(|(name, id)| (name.into(), id))
            .into(),
        ..Node::default()
    });
    let list = |keys: &[&str]| Node {
        ty: Type::Array,
        items: Some(item),
        list_type: ListType::Map(keys.iter().map(|&k| k.into()).collect()),
        ..Node::default()
    };
    let cases = [
        (
            list(&["d", "a"]),
            json!({"a": "1"}),
            "k:{\"a\":\"1\",\"d\":\"x\"}",
        ),
        (list(&["a", "b"]), json!({"a": "1"}), "k:{\"a\":\"1\"}"),
        (
            list(&["a", "b"]),
            json!({"a": "1", "b": null}),
            "k:{\"a\":\"1\",\"b\":null}",
        ),
        (list(&["b"]), json!({"a": "1"}), "i:0"),
        (
            list(&["a"]),
            json!({"a": "q\"\\\n"}),
            r#"k:{"a":"q\"\\\n"}"#,
        ),
    ];
    for (node, item, expected) in cases {
        let id = set.add(node);
        let claim = FieldSet::of_value(set.at(id), &json!([item]));
        let elements: Vec<_> = claim
            .children()
            .map(|(e, _)| e.as_str().to_owned())
            .collect();
        assert_eq!(elements, [expected]);
    }
}

#[test]
fn malformed_fields_are_refused() {
    for bad in [
        json!([]),
        json!({"f:a": 1}),
        json!({"nonsense": {}}),
        json!({"x:a": {}}),
        json!({"k:{": {}}),
        json!({"k:[1]": {}}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f:a": {"f:b": null}}),
        json!({".": 3}),
    ] {
        assert!(FieldSet::from_fields_v1(&bad).is_err(), "{bad}");
    }
}

#[test]
fn elements_become_canonical_when_read() {
    let read = FieldSet::from_fields_v1(&json!({
        "k:{ \"b\": 1, \"a\": \"x\" }": {".": {}}, "v: \"y\"": {}, "i:007": {}, ".": {},
    }));
    let canonical = json!({"k:{\"a\":\"x\",\"b\":1}": {}, "v:\"y\"": {}, "i:7": {}});
    assert_eq!(read.unwrap().into_fields_v1(), canonical);
}

#[test]
fn paths_read_as_people_write_them() {
    let set = FieldSet::from_fields_v1(&json!({
        "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}},
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {}}},
        "f:finalizers": {"v:\"a\"": {}, "v:3": {}},
        "f:list": {"i:0": {}},
        "f:zz": {},
    }));
    let set = set.unwrap();
    let mut paths = Vec::new();
    set.for_each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect::<String>()));
    assert_eq!(
        paths,
        [
            ".zz",
            ".finalizers[=\"a\"]",
            ".finalizers[=3]",
            ".list[0]",
            ".spec.containers[name=\"x\"]",
            ".spec.containers[port=80,protocol=\"TCP\"]",
            ".spec.containers[name=\"x\"].image",
        ]
    );
}
