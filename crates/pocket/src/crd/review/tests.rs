mod schemas;

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
    let base = "spec.validation.openAPIV3Schema.properties[spec].properties[f]";
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
fn a_definition_is_called_after_what_it_defines() {
    let wrong = |field: &str, given: &str| {
        format!(
            "metadata.{field}: Invalid value: {given:?}: must be spec.names.plural+\".\"+spec.group"
        )
    };
    let owner = "metadata.ownerReferences: Required value";
    for (metadata, expected) in [
        (
            json!({"name": "widgets.example.com"}),
            vec![owner.to_owned()],
        ),
        (json!({}), vec![owner.to_owned()]),
        (
            json!({"name": "x"}),
            vec![wrong("name", "x"), owner.to_owned()],
        ),
        (
            json!({"name": "x", "generateName": "y"}),
            vec![
                wrong("generateName", "y"),
                wrong("name", "x"),
                owner.to_owned(),
            ],
        ),
    ] {
        let mut object = crd();
        object["metadata"] = metadata;
        let mut problems = Problems::new();
        problems.required("metadata.ownerReferences", "");
        validate_name(&object, &mut problems);
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn names_scope_and_versions_are_reviewed() {
    for (pointer, value, expected) in [
        (
            "/spec/scope",
            json!("Everywhere"),
            r#"spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced""#,
        ),
        ("/spec/scope", json!(""), "spec.scope: Required value"),
        (
            "/spec/names/singular",
            json!("Widget"),
            r#"spec.names.singular: Invalid value: "Widget": a DNS-1035 label must consist of"#,
        ),
        (
            "/spec/names/kind",
            json!("Wid get"),
            r#"spec.names.kind: Invalid value: "Wid get": may have mixed case, but should otherwise match: a DNS-1035 label"#,
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
            r#"spec.versions[0].name: Invalid value: "1": a DNS-1035 label must consist of"#,
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            r#"spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version"#,
        ),
        (
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
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
            "spec.group: Invalid value: \"Example.com\": a lowercase RFC 1123 subdomain must consist of",
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
