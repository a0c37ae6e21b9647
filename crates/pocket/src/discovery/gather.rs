//! From single resources to groups, and from a definition to the resource it declares.

use serde_json::Value;

use super::{Group, Resource, Subresource, Version, sort};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Groups made of `(group, version, resource)`, in the order they are published. Resources keep
/// the order in which they come.
pub fn gather<'a>(resources: impl IntoIterator<Item = (&'a str, &'a str, Resource)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (group, version, resource) in resources {
        let group = found_or_new(&mut groups, |g| g.name == group, || Group::new(group));
        let versions = &mut group.versions;
        let version = found_or_new(versions, |v| v.name == version, || Version::new(version));
        version.resources.push(resource);
    }
    sort(&mut groups);
    groups
}

fn found_or_new<T>(
    list: &mut Vec<T>,
    wanted: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
) -> &mut T {
    let at = list.iter().position(wanted).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    });
    &mut list[at]
}

impl Group {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            versions: Vec::new(),
        }
    }
}

impl Version {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            resources: Vec::new(),
        }
    }
}

impl Resource {
    /// What a custom resource definition declares for one of its versions: `None` if it does not
    /// serve it. The names are those that were accepted, where the status says so.
    pub fn declared(definition: &Value, version: &str) -> Option<Self> {
        let spec = &definition["spec"];
        let served = spec["versions"]
            .as_array()?
            .iter()
            .find(|entry| entry["name"] == version && entry["served"] == true)?;
        let accepted = &definition["status"]["acceptedNames"];
        let names = match accepted["plural"].as_str() {
            Some(plural) if !plural.is_empty() => accepted,
            _ => &spec["names"],
        };
        let kind = names["kind"].as_str()?;
        let group = spec["group"].as_str()?;
        Some(Self {
            plural: names["plural"].as_str()?.into(),
            singular: match names["singular"].as_str() {
                Some(singular) if !singular.is_empty() => singular.into(),
                _ => kind.to_lowercase(),
            },
            kind: kind.into(),
            namespaced: spec["scope"] == "Namespaced",
            verbs: VERBS.map(Into::into).into(),
            short_names: strings(&names["shortNames"]),
            categories: strings(&names["categories"]),
            subresources: subresources(&served["subresources"], group, version, kind),
        })
    }
}

fn subresources(declared: &Value, group: &str, version: &str, kind: &str) -> Vec<Subresource> {
    let own = (group, version, kind);
    [("status", own), ("scale", ("autoscaling", "v1", "Scale"))]
        .into_iter()
        .filter(|(name, _)| declared[name].is_object())
        .map(|(name, (group, version, kind))| Subresource {
            name: name.into(),
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            verbs: SUBRESOURCE_VERBS.map(Into::into).into(),
        })
        .collect()
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(Into::into).collect()
}
