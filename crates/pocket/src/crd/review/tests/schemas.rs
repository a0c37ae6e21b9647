use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn schemas_use_only_the_words_they_may() {
    for (schema, expected) in [
        (
            json!({"type": "object", "$ref": "#/x"}),
            "f.$ref: Forbidden: $ref is not supported",
        ),
        (
            json!({"type": "object", "definitions": {"a": {}}}),
            "f.definitions: Forbidden: definitions is not supported",
        ),
        (
            json!({"type": "object", "patternProperties": {"a": {}}}),
            "f.patternProperties: Forbidden: patternProperties is not supported",
        ),
        (
            json!({"type": "string", "readOnly": true}),
            "f.readOnly: Forbidden: readOnly is not supported",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "f.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "text"}),
            "f.type: Unsupported value: \"text\": supported values: \"array\", \"boolean\"",
        ),
        (
            json!({"type": "null"}),
            "f.type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ),
        (
            json!({"type": "string", "pattern": "("}),
            "f.pattern: Invalid value: \"(\": must be a valid regular expression",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "f.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            "f.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            "f.items: Forbidden: items must be a schema object and not an array",
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "atomic"}),
            "f.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
            "f.x-kubernetes-list-type: Unsupported value: \"bag\"",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {}}, "x-kubernetes-list-type": "set"}),
            "f.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
            "f.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
            "f.items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "properties": {"b": {"type": "string"}}}}),
            "f.x-kubernetes-list-map-keys[0]: Invalid value: \"a\": must be the name of a property of items",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            "f.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "object"}}}}),
            "f.items.properties[a].type: Invalid value: \"object\": must be a scalar type",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["a"]}),
            "f.x-kubernetes-list-type: Invalid value: \"\": must be map if x-kubernetes-list-map-keys is non-empty",
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            "f.type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified",
        ),
    ] {
        let found = field(&schema);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{expected}: {found:?}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn schemas_are_structural() {
    for (schema, expected) in [
        (
            json!({}),
            "f.type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "array"}),
            "f.items: Required value: must be specified",
        ),
        (
            json!({"type": "array", "items": {}}),
            "f.items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "additionalProperties": {}}),
            "f.additionalProperties.type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            "f.type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is true",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            "f.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true",
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            "f.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            "f.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "string", "not": {"nullable": true}}),
            "f.not.nullable: Forbidden: must be false to be structural",
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]}),
            "f.properties[a]: Required value: because it is defined in f.allOf[0].properties[a]",
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "oneOf": [{"properties": {"b": {"default": "x"}}}]}),
            "f.oneOf[0].properties[b].default: Forbidden: must be undefined to be structural",
        ),
    ] {
        let found = field(&schema);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{expected}: {found:?}"
        );
    }
    for fine in [
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^1"}]}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"properties": {"a": {"enum": ["x"]}}}]}),
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-list-type": "set"}),
    ] {
        assert_eq!(field(&fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn the_root_is_an_object_with_plain_metadata() {
    let root = "/spec/versions/0/schema/openAPIV3Schema";
    for (schema, expected) in [
        (
            json!({}),
            ".type: Required value: must not be empty at the root",
        ),
        (
            json!({"type": "string"}),
            ".type: Invalid value: \"string\": must be object at the root",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            ".additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            ".properties[kind].type: Invalid value: \"integer\": must be string",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            ".properties[metadata]: Forbidden: must not specify anything other than name and generateName",
        ),
    ] {
        let found = changed(root, schema);
        let expected = format!("spec.validation.openAPIV3Schema{expected}");
        assert!(
            found.len() == 1 && found[0].starts_with(&expected),
            "{expected}: {found:?}"
        );
    }
    let mut object = crd();
    object["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["oneOf"] =
        json!([{"required": ["spec"]}]);
    assert!(problems(&object)[0].starts_with("spec.validation.openAPIV3Schema.oneOf: Forbidden"));
}

#[test]
fn defaults_must_be_valid_values() {
    for (schema, expected) in [
        (
            json!({"type": "integer", "default": "x"}),
            "f.default: Invalid value: \"string\":",
        ),
        (
            json!({"type": "integer", "minimum": 3, "default": 1}),
            "f.default: Invalid value: 1:",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            "f.default: Invalid value: {\"b\":1}: must not have unknown fields: \"b\"",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}, "default": {}}),
            "f.default.a: Required value",
        ),
        (
            json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1", "message": "m"}]}),
            "f.default: Invalid value: 1: m",
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "default": ["x"]}),
            "f.default[0]: Invalid value: \"string\":",
        ),
    ] {
        let found = field(&schema);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{expected}: {found:?}"
        );
    }
    let nested = json!({"type": "object", "required": ["a"], "default": {}, "properties": {"a": {"type": "string", "default": "x"}}});
    assert_eq!(field(&nested), Vec::<String>::new());
}

#[test]
fn rules_are_reviewed_where_they_stand() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.a != ''"}, {"rule": "self.b == 1"}]});
    assert_eq!(
        field(&schema),
        [
            "f.x-kubernetes-validations[1].rule: Invalid value: \"self.b == 1\": compilation failed: undefined field 'b'"
        ]
    );
}
