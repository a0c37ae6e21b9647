//! The kinds of the random requests, with valid objects to start from.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::schema::Types;

const OBJECTS: &str = include_str!("../data/objects.yaml");
const DEFINITIONS: &str = include_str!("../data/definitions.yaml");

#[derive(Debug, Clone)]
pub struct Kind {
    pub name: String,
    /// Group and version.
    pub api_version: String,
    pub plural: String,
    pub namespaced: bool,
    /// Its type in [`Types`].
    pub root: String,
    /// Whether it has a status subresource.
    pub status: bool,
    /// Whether it has a scale subresource.
    pub scale: bool,
    /// Whether it is a custom resource.
    pub custom: bool,
    /// How often it is chosen.
    pub weight: usize,
    /// Valid objects.
    pub seeds: Vec<Value>,
    /// A valid status.
    pub status_seed: Value,
}

type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    usize,
    u8,
);

const NAMESPACED: u8 = 1;
const STATUS: u8 = 2;
const SCALE: u8 = 4;

/// Kind, group and version, plural, type, weight, flags.
const BUILT_IN: [Row; 9] = [
    (
        "ConfigMap",
        "v1",
        "configmaps",
        "io.k8s.api.core.v1.ConfigMap",
        14,
        NAMESPACED,
    ),
    (
        "Secret",
        "v1",
        "secrets",
        "io.k8s.api.core.v1.Secret",
        12,
        NAMESPACED,
    ),
    (
        "Service",
        "v1",
        "services",
        "io.k8s.api.core.v1.Service",
        14,
        NAMESPACED | STATUS,
    ),
    (
        "Deployment",
        "apps/v1",
        "deployments",
        "io.k8s.api.apps.v1.Deployment",
        12,
        NAMESPACED | STATUS | SCALE,
    ),
    (
        "Pod",
        "v1",
        "pods",
        "io.k8s.api.core.v1.Pod",
        14,
        NAMESPACED | STATUS,
    ),
    (
        "Lease",
        "coordination.k8s.io/v1",
        "leases",
        "io.k8s.api.coordination.v1.Lease",
        7,
        NAMESPACED,
    ),
    (
        "Namespace",
        "v1",
        "namespaces",
        "io.k8s.api.core.v1.Namespace",
        5,
        STATUS,
    ),
    (
        "Role",
        "rbac.authorization.k8s.io/v1",
        "roles",
        "io.k8s.api.rbac.v1.Role",
        7,
        NAMESPACED,
    ),
    (
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        4,
        STATUS,
    ),
];
const WEIGHT_OF_CUSTOM: usize = 11;

impl Kind {
    /// The path of the collection in a namespace.
    pub fn collection(&self, namespace: &str) -> String {
        let root = match self.api_version.as_str() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{}", self.plural)
        }
    }
}

/// The definitions of the custom kinds.
pub fn definitions() -> Result<Vec<Value>> {
    let mut all: Vec<Value> = yaml(DEFINITIONS).context("data/definitions.yaml")?;
    for definition in &mut all {
        definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
        definition["kind"] = "CustomResourceDefinition".into();
    }
    Ok(all)
}

/// All kinds; the types of custom ones are added to `types`.
pub fn table(types: &mut Types) -> Result<Vec<Kind>> {
    let mut seeds: Map<String, Value> = yaml(OBJECTS).context("data/objects.yaml")?;
    let definitions = definitions()?;
    seeds.insert(
        "CustomResourceDefinition".into(),
        definitions.clone().into(),
    );
    let mut kinds: Vec<_> = BUILT_IN.iter().map(built_in).collect();
    for definition in &definitions {
        for version in definition["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            kinds.push(custom(definition, version, types));
        }
    }
    for kind in &mut kinds {
        let own = seeds.get(&kind.name).and_then(Value::as_array);
        kind.seeds = own
            .cloned()
            .with_context(|| format!("no objects of {}", kind.name))?;
        let statuses = seeds["Status"].as_array().into_iter().flatten();
        let mut statuses = statuses.filter(|status| status["kind"] == kind.name);
        kind.status_seed = statuses
            .next()
            .map_or(json!({}), |status| status["status"].clone());
    }
    Ok(kinds)
}

fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    Ok(serde_saphyr::from_str(text)?)
}

fn built_in(row: &Row) -> Kind {
    let (name, api_version, plural, root, weight, has) = *row;
    Kind {
        name: name.into(),
        api_version: api_version.into(),
        plural: plural.into(),
        namespaced: has & NAMESPACED != 0,
        root: root.into(),
        status: has & STATUS != 0,
        scale: has & SCALE != 0,
        custom: false,
        weight,
        seeds: Vec::new(),
        status_seed: Value::Null,
    }
}

fn custom(definition: &Value, version: &Value, types: &mut Types) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    let name = text(&spec["names"]["kind"]);
    let root = format!("{name}.{}", text(&version["name"]));
    types.add(&root, version["schema"]["openAPIV3Schema"].clone());
    Kind {
        api_version: format!("{}/{}", text(&spec["group"]), text(&version["name"])),
        plural: text(&spec["names"]["plural"]),
        namespaced: spec["scope"] == "Namespaced",
        status: version["subresources"]["status"].is_object(),
        scale: version["subresources"]["scale"].is_object(),
        custom: true,
        weight: if version["deprecated"] == true {
            2
        } else {
            WEIGHT_OF_CUSTOM
        },
        seeds: Vec::new(),
        status_seed: Value::Null,
        name,
        root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_type_and_objects() {
        let mut types = Types::read().unwrap();
        for kind in table(&mut types).unwrap() {
            assert!(types.of(&kind.root).is_object(), "{}", kind.name);
            assert!(!kind.seeds.is_empty(), "{}", kind.name);
            assert_eq!(
                kind.status,
                kind.status_seed != json!({}) || kind.name == "CustomResourceDefinition",
                "{}",
                kind.name
            );
        }
    }
}
