//! The definitions that the served kinds reach.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Map, Value};

use super::{
    discovery::{api_version, list},
    served::Served,
};

/// The definitions reached from the served kinds and the loose types, one a line.
pub(super) fn render(
    types: &Value,
    resources: &[Value],
    served: &Served,
) -> anyhow::Result<String> {
    let all = definitions(types)?;
    let names = by_kind(all);
    let mut reached = BTreeSet::new();
    for (version, kind) in kinds(resources) {
        if let Some(name) = names.get(&(version, kind)) {
            reach(name, all, &mut reached)?;
        }
    }
    for name in &served.types {
        reach(name, all, &mut reached)?;
    }
    let lines: Vec<String> = reached
        .into_iter()
        .map(|name| format!("\"{name}\":{}", all[name]))
        .collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// The definitions of `types.json`.
pub(super) fn definitions(types: &Value) -> anyhow::Result<&Map<String, Value>> {
    types["definitions"]
        .as_object()
        .context("types.json has no definitions")
}

/// apiVersion and kind of everything that the resources and their subresources are sent.
pub(super) fn kinds(resources: &[Value]) -> BTreeSet<(String, String)> {
    let mut kinds = BTreeSet::new();
    for resource in resources {
        for entry in std::iter::once(resource).chain(list(&resource["subresources"])) {
            let kind = entry["kind"].as_str().unwrap_or_default();
            kinds.insert((api_version(entry), kind.into()));
        }
    }
    kinds
}

fn by_kind(all: &Map<String, Value>) -> BTreeMap<(String, String), &str> {
    let mut names = BTreeMap::new();
    for (name, definition) in all {
        for entry in list(&definition["x-kubernetes-group-version-kind"]) {
            let kind = entry["kind"].as_str().unwrap_or_default();
            names.insert((api_version(entry), kind.into()), name.as_str());
        }
    }
    names
}

fn reach<'a>(
    name: &str,
    all: &'a Map<String, Value>,
    reached: &mut BTreeSet<&'a str>,
) -> anyhow::Result<()> {
    let (name, definition) = all
        .get_key_value(name)
        .with_context(|| format!("types.json lacks {name}"))?;
    if reached.insert(name) {
        let mut next = Vec::new();
        references(definition, &mut next);
        for name in next {
            reach(name, all, reached)?;
        }
    }
    Ok(())
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            let target = map.get("$ref").and_then(Value::as_str);
            found.extend(target.and_then(|path| path.rsplit('/').next()));
            map.values().for_each(|inner| references(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| references(inner, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_served_kinds_reach_is_kept() {
        let types = json!({"definitions": {
            "a.Ship": {
                "properties": {"crew": {"items": {"$ref": "#/definitions/a.Crew"}}},
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Ship"}],
            },
            "a.Crew": {"properties": {"chief": {"$ref": "#/definitions/a.Crew"}}},
            "a.Loose": {},
            "a.Island": {},
        }});
        let resources = [json!({"group": "", "version": "v1", "kind": "Ship"})];
        let served = Served::parse("type a.Loose").unwrap();
        let text = render(&types, &resources, &served).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        let names: Vec<&String> = kept.as_object().unwrap().keys().collect();
        assert_eq!(names, ["a.Crew", "a.Loose", "a.Ship"]);
    }

    #[test]
    fn a_type_that_is_missing_is_an_error() {
        let served = Served::parse("type a.Gone").unwrap();
        assert!(render(&json!({"definitions": {}}), &[], &served).is_err());
    }
}
