//! Looks up the kinds of workloads.

use std::collections::HashMap;

use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
    discovery,
};
use neap_kit::apply::ResourceKind;
use parking_lot::Mutex;

use crate::api::ScaleTarget;

/// The API server has no such kind, or did not respond.
#[derive(Debug, thiserror::Error)]
#[error("{kind} of {version} cannot be scaled: the server has no such kind")]
pub struct UnknownKind {
    kind: String,
    version: String,
    #[source]
    source: Box<kube::Error>,
}

impl UnknownKind {
    /// Whether the API server responded that there is no such kind. A server that is busy responds
    /// otherwise.
    pub fn is_definite(&self) -> bool {
        match &*self.source {
            kube::Error::Api(status) => status.code == 404,
            kube::Error::Discovery(_) => true,
            _ => false,
        }
    }
}

/// Looks kinds up by discovery, and caches those that exist.
#[derive(Debug, Default)]
pub struct KindLookup {
    cache: Mutex<HashMap<(String, String), ResourceKind>>,
}

impl KindLookup {
    /// The kind that `target` names. The built-in ones need no discovery.
    pub async fn of(
        &self,
        client: &Client,
        target: &ScaleTarget,
    ) -> Result<ResourceKind, UnknownKind> {
        let kind = canonical_kind(&target.kind).to_owned();
        let version = target.api_version.clone();
        if let Some(kind) = built_in(&version, &kind) {
            return Ok(kind);
        }
        let name = (version, kind);
        if let Some(cached) = self.cache.lock().get(&name) {
            return Ok(cached.clone());
        }
        let (version, kind) = &name;
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, number, kind);
        match discovery::pinned_kind(client, &gvk).await {
            Ok((resource, capabilities)) => {
                let namespaced = capabilities.scope == discovery::Scope::Namespaced;
                let kind = ResourceKind {
                    resource,
                    namespaced,
                };
                self.cache.lock().insert(name, kind.clone());
                Ok(kind)
            }
            Err(source) => Err(UnknownKind {
                kind: kind.clone(),
                version: version.clone(),
                source: Box::new(source),
            }),
        }
    }
}

/// The kind as the API server spells it; two have an older spelling as well.
pub fn canonical_kind(kind: &str) -> &str {
    match kind {
        "deployments" => "Deployment",
        "rollouts" => "Rollout",
        kind => kind,
    }
}

fn built_in(version: &str, kind: &str) -> Option<ResourceKind> {
    let (group, number, plural) = match (version, kind) {
        ("apps/v1", "Deployment") => ("apps", "v1", "deployments"),
        ("apps/v1", "StatefulSet") => ("apps", "v1", "statefulsets"),
        ("argoproj.io/v1alpha1", "Rollout") => ("argoproj.io", "v1alpha1", "rollouts"),
        _ => return None,
    };
    let gvk = GroupVersionKind::gvk(group, number, kind);
    Some(ResourceKind {
        resource: ApiResource::from_gvk_with_plural(&gvk, plural),
        namespaced: true,
    })
}

/// The kind of KEDA's ScaledObjects.
pub fn scaled_object_kind() -> ResourceKind {
    let gvk = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    ResourceKind {
        resource: ApiResource::from_gvk_with_plural(&gvk, "scaledobjects"),
        namespaced: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_not_found_means_that_there_is_no_such_kind() {
        for (code, definite) in [(404, true), (403, false), (429, false), (503, false)] {
            let status = kube::core::Status::failure("no", "No").with_code(code);
            let unknown = UnknownKind {
                kind: "Web".to_owned(),
                version: "example.com/v1".to_owned(),
                source: Box::new(kube::Error::Api(Box::new(status))),
            };
            assert_eq!(unknown.is_definite(), definite, "{code}");
        }
    }

    #[test]
    fn built_in_kinds_are_known_in_all_their_spellings() {
        for (version, kind, path) in [
            (
                "apps/v1",
                "deployments",
                Some(("Deployment", "deployments")),
            ),
            ("apps/v1", "Deployment", Some(("Deployment", "deployments"))),
            (
                "apps/v1",
                "StatefulSet",
                Some(("StatefulSet", "statefulsets")),
            ),
            (
                "argoproj.io/v1alpha1",
                "rollouts",
                Some(("Rollout", "rollouts")),
            ),
            ("example.com/v1", "Deployment", None),
        ] {
            let known = built_in(version, canonical_kind(kind)).map(|kind| kind.resource);
            let known = known.as_ref().map(|it| (&*it.kind, &*it.plural));
            assert_eq!(known, path, "{version} {kind}");
        }
    }
}
