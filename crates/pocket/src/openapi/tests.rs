use serde_json::{Value, json};

use super::*;

const CONFIG_MAP: Published<'static> = Published {
    plural: "configmaps",
    kind: "ConfigMap",
    namespaced: true,
    patched: true,
    schema: SchemaOrigin::Builtin,
};

fn core<'a>(kinds: &'a [Published<'a>]) -> GroupVersion<'a> {
    GroupVersion {
        group: "",
        version: "v1",
        kinds,
    }
}

fn boats(schema: &Value) -> Published<'_> {
    Published {
        plural: "boats",
        kind: "Boat",
        namespaced: false,
        patched: true,
        schema: SchemaOrigin::Custom(schema),
    }
}

fn tide<'a>(kinds: &'a [Published<'a>]) -> GroupVersion<'a> {
    GroupVersion {
        group: "tide.dev",
        version: "v1",
        kinds,
    }
}

/// The references of a document that name no schema.
fn dangling(value: &Value, schemas: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, inner)| match (key.as_str(), inner.as_str()) {
                ("$ref", Some(target)) => {
                    let name = target.strip_prefix("#/components/schemas/");
                    let known = name.is_some_and(|name| schemas.get(name).is_some());
                    if known {
                        vec![]
                    } else {
                        vec![target.to_owned()]
                    }
                }
                _ => dangling(inner, schemas),
            })
            .collect(),
        Value::Array(list) => list
            .iter()
            .flat_map(|inner| dangling(inner, schemas))
            .collect(),
        _ => vec![],
    }
}

#[test]
fn a_document_holds_what_its_kinds_reach_and_no_more() {
    let document = core(&[CONFIG_MAP]).document();
    let schemas = &document["components"]["schemas"];
    assert!(schemas["io.k8s.api.core.v1.ConfigMap"]["properties"]["data"].is_object());
    assert!(
        schemas
            .get("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference")
            .is_some()
    );
    assert!(schemas.get("io.k8s.api.core.v1.Pod").is_none());
    assert_eq!(dangling(&document, schemas), Vec::<String>::new());
}

#[test]
fn every_built_in_kind_has_a_document_without_dangling_references() {
    for builtin in crate::discovery::builtins() {
        let kind = Published {
            plural: &builtin.resource.plural,
            kind: &builtin.resource.kind,
            namespaced: builtin.resource.namespaced,
            patched: true,
            schema: SchemaOrigin::Builtin,
        };
        let place = GroupVersion {
            group: &builtin.group,
            version: &builtin.version,
            kinds: &[kind],
        };
        let document = place.document();
        let schemas = &document["components"]["schemas"];
        assert!(!schemas.as_object().unwrap().is_empty(), "{}", kind.kind);
        assert_eq!(
            dangling(&document, schemas),
            Vec::<String>::new(),
            "{}",
            kind.kind
        );
    }
}

#[test]
fn types_that_refer_to_themselves_end() {
    let crd = Published {
        plural: "customresourcedefinitions",
        kind: "CustomResourceDefinition",
        namespaced: false,
        patched: true,
        schema: SchemaOrigin::Builtin,
    };
    let place = GroupVersion {
        group: "apiextensions.k8s.io",
        version: "v1",
        kinds: &[crd],
    };
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let not = &place.document()["components"]["schemas"][name]["properties"]["not"];
    assert_eq!(
        *not,
        json!({"$ref": format!("#/components/schemas/{name}")})
    );
}

#[test]
fn only_built_in_kinds_take_a_strategic_patch() {
    let document = core(&[CONFIG_MAP]).document();
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    let content = patch["requestBody"]["content"].as_object().unwrap();
    assert_eq!(content.len(), 4);
    assert!(content.contains_key("application/strategic-merge-patch+json"));
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    let names: Vec<&Value> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["name"])
        .collect();
    assert!(names.contains(&&json!("fieldValidation")) && names.contains(&&json!("dryRun")));

    let schema = json!({});
    let document = tide(&[boats(&schema)]).document();
    let patch = &document["paths"]["/apis/tide.dev/v1/boats/{name}"]["patch"];
    let content = patch["requestBody"]["content"].as_object().unwrap();
    assert!(!content.contains_key("application/strategic-merge-patch+json"));
    assert!(content.contains_key("application/apply-patch+yaml"));
}

#[test]
fn a_custom_schema_gains_what_every_object_has_and_keeps_the_rest() {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "default": {"crew": 2}}},
    });
    let document = tide(&[boats(&schema)]).document();
    let schemas = &document["components"]["schemas"];
    let boat = &schemas["dev.tide.v1.Boat"];
    assert_eq!(boat["properties"]["spec"]["default"], json!({"crew": 2}));
    assert_eq!(boat["properties"]["kind"], json!({"type": "string"}));
    assert_eq!(boat["x-kubernetes-group-version-kind"][0]["kind"], "Boat");
    assert_eq!(dangling(&document, schemas), Vec::<String>::new());
}

#[test]
fn the_index_names_documents_by_a_hash_that_follows_their_content() {
    let (one, other) = (
        json!({"type": "object"}),
        json!({"type": "object", "title": "x"}),
    );
    let hash = |schema: &Value| tide(&[boats(schema)]).hash();
    assert_eq!(hash(&one), hash(&one));
    assert_ne!(hash(&one), hash(&other));
    assert_ne!(core(&[]).hash(), core(&[CONFIG_MAP]).hash());
    let place = core(&[CONFIG_MAP]);
    let index = index([(place.path(), "H".to_owned())]);
    assert_eq!(
        index["paths"]["api/v1"]["serverRelativeURL"],
        "/openapi/v3/api/v1?hash=H"
    );
}
