//! The served resources with their verbs and names, one line each.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::served::Served;

/// The served resources in the order the server publishes them.
pub(super) fn resources(discovery: &Value, served: &Served) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for part in ["api", "apis"] {
        for group in list(&discovery[part]["items"]) {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in list(&group["versions"]) {
                found.extend(versioned(name, version, served)?);
            }
        }
    }
    if found.len() != served.resources().count() {
        let missing: Vec<&str> = served
            .resources()
            .filter(|wanted| !found.iter().any(|resource| key(resource) == *wanted))
            .collect();
        bail!("served.txt names what discovery.json lacks: {missing:?}");
    }
    Ok(found)
}

/// `apiVersion/plural` of a resource.
pub(super) fn key(resource: &Value) -> String {
    let plural = resource["plural"].as_str().unwrap_or_default();
    format!("{}/{plural}", api_version(resource))
}

/// `v1` or `apps/v1`, of a resource or a subresource.
pub(super) fn api_version(entry: &Value) -> String {
    let version = entry["version"].as_str().unwrap_or_default();
    match entry["group"].as_str() {
        None | Some("") => version.into(),
        Some(group) => format!("{group}/{version}"),
    }
}

fn versioned(group: &str, version: &Value, served: &Served) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for published in list(&version["resources"]) {
        let mut resource = json!({
            "group": group,
            "version": version["version"],
            "plural": published["resource"],
            "singular": published["singularResource"],
            "kind": published["responseKind"]["kind"],
            "namespaced": published["scope"] == "Namespaced",
            "verbs": published["verbs"],
        });
        let Some(wanted) = served.subresources(&key(&resource)) else {
            continue;
        };
        for word in ["shortNames", "categories"] {
            if !published[word].is_null() {
                resource[word] = published[word].clone();
            }
        }
        let subresources = subresources(&resource, published, wanted)?;
        if !subresources.is_empty() {
            resource["subresources"] = Value::Array(subresources);
        }
        found.push(resource);
    }
    Ok(found)
}

fn subresources(
    resource: &Value,
    published: &Value,
    wanted: &[String],
) -> anyhow::Result<Vec<Value>> {
    let find = |name: &String| {
        let entry = list(&published["subresources"])
            .iter()
            .find(|s| s["subresource"] == name.as_str());
        entry.with_context(|| format!("{} has no {name}", key(resource)))
    };
    let render = |entry: &Value| {
        let kind = &entry["responseKind"];
        let own = kind["version"].as_str().unwrap_or_default().is_empty();
        let place = if own { resource } else { kind };
        json!({
            "name": entry["subresource"],
            "group": place["group"],
            "version": place["version"],
            "kind": kind["kind"],
            "verbs": entry["verbs"],
        })
    };
    wanted.iter().map(|name| find(name).map(render)).collect()
}

/// The file: a list with one resource a line, so that a change reads well in a diff.
pub(super) fn render(resources: &[Value]) -> anyhow::Result<String> {
    let lines: Vec<String> = resources
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

/// The entries of a list, none if it is something else.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
