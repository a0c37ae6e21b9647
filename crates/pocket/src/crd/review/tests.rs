use serde_json::json;

use super::*;

fn crd() -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "color": {"type": "string"}, "size": {"type": "integer"}}}}}}}]}})
}

fn problems(object: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    validate(object, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

/// Problems of the definition with the value at `pointer` replaced.
fn changed(pointer: &str, value: Value) -> Vec<String> {
    let mut object = crd();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[name] = value;
    problems(&object)
}

/// Problems of a definition whose `spec` has this one field.
fn field(schema: &Value) -> Vec<String> {
    let properties = json!({"f": schema});
    let found = changed(
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties",
        properties,
    );
    let base = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[f]";
    found
        .into_iter()
        .map(|text| text.replace(base, "f"))
        .collect()
}

#[test]
fn a_plain_definition_passes() {
    assert_eq!(problems(&crd()), Vec::<String>::new());
}

#[test]
fn names_scope_and_versions_are_reviewed() {
    for (pointer, value, expected) in [
        (
            "/metadata/name",
            json!("other"),
            r#"metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group"#,
        ),
        (
            "/spec/scope",
            json!("Everywhere"),
            r#"spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced""#,
        ),
        ("/spec/scope", json!(""), "spec.scope: Required value"),
        (
            "/spec/names/singular",
            json!("Widget"),
            r#"spec.names.singular: Invalid value: "Widget": must be a DNS label"#,
        ),
        (
            "/spec/names/kind",
            json!("Wid get"),
            r#"spec.names.kind: Invalid value: "Wid get": may have mixed case, but otherwise must be"#,
        ),
        (
            "/spec/names/listKind",
            json!("Widget"),
            r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#,
        ),
        (
            "/spec/names/shortNames",
            json!(["a", "B"]),
            r#"spec.names.shortNames[1]: Invalid value: "B""#,
        ),
        (
            "/spec/versions/0/name",
            json!("1"),
            r#"spec.versions[0].name: Invalid value: "1": must be a DNS label"#,
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            r#"spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version"#,
        ),
        (
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            r#"spec.conversion.strategy: Invalid value: "Webhook": conversion webhooks are not offered"#,
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Magic"}),
            "spec.conversion.strategy: Unsupported value",
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields: Invalid value: true",
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("old"),
            "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set for deprecated versions",
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "A", "type": "string", "jsonPath": ".spec["}]),
            "spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: \".spec[\": is an invalid path",
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "A", "type": "text", "jsonPath": ".a"}]),
            "spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: \"text\"",
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.x"}}),
            "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path of fields under .spec",
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": ".spec.x"}}),
            "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.bogus"}]),
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec.bogus\": is an invalid path: does not refer to a valid field",
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec"}]),
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec\": must point to a field of type",
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".metadata.name"}]),
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".metadata.name\": must not point to fields in metadata",
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.color"}]),
            "spec.versions[0].selectableFields[1].jsonPath: Duplicate value: \".spec.color\"",
        ),
    ] {
        let found = changed(pointer, value);
        assert_eq!(found.len(), 1, "{pointer}: {found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }
    let nine: Vec<Value> = (0..9)
        .map(|n| json!({"jsonPath": format!(".spec.f{n}")}))
        .collect();
    let found = changed("/spec/versions/0/selectableFields", json!(nine));
    assert_eq!(
        found[0],
        "spec.versions[0].selectableFields: Too many: 9: must have at most 8 items"
    );
}

#[test]
fn groups_are_domains_and_some_are_protected() {
    for (group, annotations, expected) in [
        (
            "example",
            json!({}),
            "spec.group: Invalid value: \"example\": should be a domain with at least one dot",
        ),
        (
            "Example.com",
            json!({}),
            "spec.group: Invalid value: \"Example.com\": must be a DNS subdomain",
        ),
        (
            "x.k8s.io",
            json!({}),
            "metadata.annotations[api-approved.kubernetes.io]: Required value",
        ),
        (
            "x.k8s.io",
            json!({"api-approved.kubernetes.io": "yes"}),
            "metadata.annotations[api-approved.kubernetes.io]: Invalid value: \"yes\"",
        ),
        (
            "x.k8s.io",
            json!({"api-approved.kubernetes.io": "unapproved, experimental"}),
            "",
        ),
        (
            "x.k8s.io",
            json!({"api-approved.kubernetes.io": "https://example.com/1"}),
            "",
        ),
        ("notk8s.io", json!({}), ""),
    ] {
        let mut object = crd();
        object["spec"]["group"] = json!(group);
        object["metadata"] =
            json!({"name": format!("widgets.{group}"), "annotations": annotations});
        let found = problems(&object);
        let first = found.first().map(String::as_str).unwrap_or_default();
        assert!(
            first.starts_with(expected) && first.is_empty() == expected.is_empty(),
            "{group}: {found:?}"
        );
    }
}

#[test]
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
        let expected = format!("spec.versions[0].schema.openAPIV3Schema{expected}");
        assert!(
            found.len() == 1 && found[0].starts_with(&expected),
            "{expected}: {found:?}"
        );
    }
    let mut object = crd();
    object["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["oneOf"] =
        json!([{"required": ["spec"]}]);
    assert!(
        problems(&object)[0]
            .starts_with("spec.versions[0].schema.openAPIV3Schema.oneOf: Forbidden")
    );
}

#[test]
fn defaults_must_be_what_somebody_could_have_sent() {
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

#[test]
fn defaults_of_the_definition_itself_are_filled_once() {
    let mut object = crd();
    object["spec"]["names"] = json!({"plural": "widgets", "kind": "Widget"});
    default(&mut object);
    assert_eq!(object["spec"]["names"]["singular"], "widget");
    assert_eq!(object["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(object["status"]["conditions"], json!([]));
    let once = object.clone();
    default(&mut object);
    assert_eq!(object, once);
    assert_eq!(problems(&object), Vec::<String>::new());
}

#[test]
fn changes_keep_what_storage_depends_on() {
    let update = |change: fn(&mut Value), established: bool| {
        let mut old = crd();
        default(&mut old);
        if established {
            crate::crd::accept(&mut old, "2024-01-01T00:00:00Z", None);
        }
        let mut new = old.clone();
        change(&mut new);
        let mut problems = Problems::new();
        validate_update(&new, &old, &mut problems);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let group = |object: &mut Value| object["spec"]["group"] = json!("other.com");
    let scope = |object: &mut Value| object["spec"]["scope"] = json!("Cluster");
    let kind = |object: &mut Value| object["spec"]["names"]["kind"] = json!("Gadget");
    let versions = |object: &mut Value| object["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(
        update(group, false),
        ["spec.group: Invalid value: \"other.com\": field is immutable"]
    );
    assert!(update(scope, false).is_empty());
    assert_eq!(
        update(scope, true),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
    assert_eq!(
        update(kind, true),
        ["spec.names.kind: Invalid value: \"Gadget\": field is immutable"]
    );
    assert!(update(versions, true)[0].starts_with(
        "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"
    ));
    assert!(update(|_| {}, true).is_empty());
}
