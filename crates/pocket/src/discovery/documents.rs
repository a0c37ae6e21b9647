//! The discovery documents.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{ApiResource, DiscoveryVersion, Group, Subresource, group_version};
use crate::digest::Digest;

/// A rendered document and the ETag of its content, quotes included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// JSON text.
    pub body: Bytes,
    /// Changes exactly when the body does.
    pub etag: String,
}

impl Document {
    /// The text of `value` and its ETag.
    pub fn new(value: &Value) -> Self {
        let body = Bytes::from(value.to_string());
        let etag = Digest::of(&body).etag();
        Self { body, etag }
    }
}

/// `/api`: the versions of the core group. `address` is where clients reach the server.
pub fn api_versions(groups: &[Group], address: &str) -> Value {
    let core = groups.iter().filter(|group| group.name.is_empty());
    let versions: Vec<&str> = core
        .flat_map(|group| group.versions.iter().map(|version| &*version.name))
        .collect();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`: all groups but the core one.
pub fn group_list(groups: &[Group]) -> Value {
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(group_entry).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub fn group(group: &Group) -> Value {
    let mut entry = group_entry(group);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    entry
}

fn group_entry(group: &Group) -> Value {
    let entry = |version: &DiscoveryVersion| {
        let group_version = group_version(&group.name, &version.name);
        json!({"groupVersion": group_version, "version": version.name})
    };
    json!({
        "name": group.name,
        "versions": group.versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": group.versions.first().map(entry),
    })
}

/// `/api/v1` and `/apis/GROUP/VERSION`: resources, each followed by its subresources.
pub fn resource_list(group: &str, version: &DiscoveryVersion) -> Value {
    let mut rows = Vec::new();
    for resource in &version.resources {
        rows.push(resource_row(group, &version.name, resource));
        for subresource in &resource.subresources {
            rows.push(subresource_row(group, &version.name, resource, subresource));
        }
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version(group, &version.name),
        "resources": rows,
    });
    // The document of the core group has no `kind` and `apiVersion` of its own.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    list
}

fn resource_row(group: &str, version: &str, resource: &ApiResource) -> Value {
    let mut row = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    names(&mut row, resource);
    // Only stored resources have a storage version; it is opaque to clients.
    if resource.verbs.iter().any(|verb| verb == "list") {
        let stored = format!("{group}/{version}/{}", resource.kind);
        row["storageVersionHash"] = STANDARD.encode(Digest::of(stored).short()).into();
    }
    row
}

fn subresource_row(
    group: &str,
    version: &str,
    resource: &ApiResource,
    subresource: &Subresource,
) -> Value {
    let mut row = json!({
        "name": format!("{}/{}", resource.plural, subresource.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": subresource.verbs,
    });
    if (&*subresource.group, &*subresource.version) != (group, version) {
        row["group"] = subresource.group.as_str().into();
        row["version"] = subresource.version.as_str().into();
    }
    row
}

/// The `APIGroupDiscoveryList` of `/api` (the core group) or of `/apis` (the others).
pub fn aggregated(groups: &[Group], core: bool) -> Value {
    let wanted = groups.iter().filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = wanted.map(aggregated_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(group: &Group) -> Value {
    let version = |version: &DiscoveryVersion| {
        let resources = version.resources.iter();
        let resources: Vec<Value> = resources
            .map(|resource| aggregated_resource(&group.name, &version.name, resource))
            .collect();
        json!({"version": version.name, "freshness": "Current", "resources": resources})
    };
    let metadata = if group.name.is_empty() {
        json!({})
    } else {
        json!({"name": group.name})
    };
    json!({"metadata": metadata, "versions": group.versions.iter().map(version).collect::<Vec<_>>()})
}

fn aggregated_resource(group: &str, version: &str, resource: &ApiResource) -> Value {
    // A built-in kind of the group version it is listed in is written by its name alone.
    let kind = |(group_, version_): (&str, &str), kind: &str| {
        let at_home = !resource.custom && (group_, version_) == (group, version);
        let (group, version) = if at_home {
            ("", "")
        } else {
            (group_, version_)
        };
        response_kind(group, version, kind)
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind((group, version), &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    names(&mut entry, resource);
    let subresource = |sub: &Subresource| {
        json!({
            "subresource": sub.name,
            "responseKind": kind((&sub.group, &sub.version), &sub.kind),
            "verbs": sub.verbs,
        })
    };
    if !resource.subresources.is_empty() {
        entry["subresources"] = resource.subresources.iter().map(subresource).collect();
    }
    entry
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn names(entry: &mut Value, resource: &ApiResource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.as_slice().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.as_slice().into();
    }
}
