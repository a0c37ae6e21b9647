//! Finds the kind that the user named among those the server has.

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};

use crate::{
    exit::{Exit, Failure},
    inspect::cluster::Cluster,
};

/// A kind of the server, and the path of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiscoveredResource {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) plural: String,
    pub(super) namespaced: bool,
}

impl DiscoveredResource {
    /// Finds the kind that `typed` names: by kind, plural, singular or short name, with or without its
    /// group. The core group takes precedence, then the order of the server.
    pub(super) async fn find(cluster: &Cluster, typed: &str) -> Result<Self, Failure> {
        let client = &cluster.client;
        let failed = |error| cluster.failed("the kinds", &error);
        let core = client.list_core_api_resources("v1").await.map_err(failed)?;
        if let Some(found) = Self::among(&core, typed) {
            return Ok(found);
        }
        let groups = client.list_api_groups().await.map_err(failed)?;
        let versions = groups.groups.iter().filter_map(|group| {
            let preferred = group.preferred_version.as_ref();
            preferred.or(group.versions.first())
        });
        let lists = versions.map(|version| client.list_api_group_resources(&version.group_version));
        // A group that cannot be read, for example of an unavailable API service, is left out.
        let lists = join_all(lists).await.into_iter().flatten();
        let mut found = lists.filter_map(|list| Self::among(&list, typed));
        found.next().ok_or_else(|| unknown(cluster, typed))
    }

    fn among(list: &APIResourceList, typed: &str) -> Option<Self> {
        let (_, group) = split(&list.group_version);
        let named = |one: &&APIResource| !one.name.contains('/') && is(one, group, typed);
        let found = list.resources.iter().find(named)?;
        Some(Self {
            kind: found.kind.clone(),
            api_version: list.group_version.clone(),
            plural: found.name.clone(),
            namespaced: found.namespaced,
        })
    }
}

/// Version and group.
fn split(group_version: &str) -> (&str, &str) {
    match group_version.split_once('/') {
        Some((group, version)) => (version, group),
        None => (group_version, ""),
    }
}

fn is(resource: &APIResource, group: &str, typed: &str) -> bool {
    let short = resource.short_names.iter().flatten();
    let own = [&resource.kind, &resource.name, &resource.singular_name];
    let mut names = own.into_iter().chain(short).filter(|name| !name.is_empty());
    let typed = typed.to_ascii_lowercase();
    names.any(|name| {
        let name = name.to_ascii_lowercase();
        typed == name || (!group.is_empty() && typed == format!("{name}.{group}"))
    })
}

fn unknown(cluster: &Cluster, typed: &str) -> Failure {
    let what = format!("the kind {typed} does not exist");
    let why = format!("{} serves no kind of that name", cluster.address);
    Failure::new("NT-CLI-0007", Exit::NotFound, &what, &why)
        .remedy("list the kinds with kubectl api-resources")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_found_by_any_of_its_names() {
        let list: APIResourceList = serde_json::from_value(json!({
            "groupVersion": "apps/v1",
            "resources": [
                {"name": "deployments/status", "singularName": "", "namespaced": true, "kind": "Deployment", "verbs": []},
                {"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment", "verbs": [], "shortNames": ["deploy"]},
            ],
        }))
        .unwrap();
        for typed in [
            "Deployment",
            "deployments",
            "deployment",
            "deploy",
            "deploy.apps",
            "Deployments.apps",
        ] {
            let found = DiscoveredResource::among(&list, typed).expect(typed);
            assert_eq!(
                (&*found.plural, &*found.api_version),
                ("deployments", "apps/v1")
            );
        }
        for typed in ["", "deploy.batch", "pod", "deployments/status"] {
            assert_eq!(DiscoveredResource::among(&list, typed), None, "{typed}");
        }
    }
}
