//! Kinds that can be scaled, whatever they are.

use std::collections::HashMap;

use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
    discovery,
};
use neap_kit::apply::Kind;
use parking_lot::Mutex;

use crate::api::ScaleTarget;

/// The server has no such kind, or does not say.
#[derive(Debug, thiserror::Error)]
#[error("{kind} of {version} cannot be scaled: the server has no such kind")]
pub struct Unknown {
    kind: String,
    version: String,
    #[source]
    source: Box<kube::Error>,
}

impl Unknown {
    /// Whether the server did say that there is none. One that is busy says something else.
    pub fn is_answered(&self) -> bool {
        match &*self.source {
            kube::Error::Api(status) => status.code == 404,
            kube::Error::Discovery(_) => true,
            _ => false,
        }
    }
}

/// Looks kinds up, and remembers those that are there.
#[derive(Debug, Default)]
pub struct Kinds {
    known: Mutex<HashMap<(String, String), Kind>>,
}

impl Kinds {
    /// The kind that `target` names. The usual ones are known without asking.
    pub async fn of(&self, client: &Client, target: &ScaleTarget) -> Result<Kind, Unknown> {
        let kind = spelled(&target.kind).to_owned();
        let version = target.api_version.clone();
        if let Some(kind) = usual(&version, &kind) {
            return Ok(kind);
        }
        let identity = (version, kind);
        if let Some(known) = self.known.lock().get(&identity) {
            return Ok(known.clone());
        }
        let (version, kind) = &identity;
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let named = GroupVersionKind::gvk(group, number, kind);
        match discovery::pinned_kind(client, &named).await {
            Ok((resource, capabilities)) => {
                let namespaced = capabilities.scope == discovery::Scope::Namespaced;
                let kind = Kind {
                    resource,
                    namespaced,
                };
                self.known.lock().insert(identity, kind.clone());
                Ok(kind)
            }
            Err(source) => Err(Unknown {
                kind: kind.clone(),
                version: version.clone(),
                source: Box::new(source),
            }),
        }
    }
}

/// The kind as the server spells it; two are known by an older spelling as well.
pub fn spelled(kind: &str) -> &str {
    match kind {
        "deployments" => "Deployment",
        "rollouts" => "Rollout",
        kind => kind,
    }
}

fn usual(version: &str, kind: &str) -> Option<Kind> {
    let (group, number, plural) = match (version, kind) {
        ("apps/v1", "Deployment") => ("apps", "v1", "deployments"),
        ("apps/v1", "StatefulSet") => ("apps", "v1", "statefulsets"),
        ("argoproj.io/v1alpha1", "Rollout") => ("argoproj.io", "v1alpha1", "rollouts"),
        _ => return None,
    };
    let named = GroupVersionKind::gvk(group, number, kind);
    Some(Kind {
        resource: ApiResource::from_gvk_with_plural(&named, plural),
        namespaced: true,
    })
}

/// The kind of KEDA's ScaledObjects.
pub fn scaled_objects() -> Kind {
    let named = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    Kind {
        resource: ApiResource::from_gvk_with_plural(&named, "scaledobjects"),
        namespaced: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_knows_no_such_kind_has_said_so() {
        for (code, answered) in [(404, true), (403, false), (429, false), (503, false)] {
            let status = kube::core::Status::failure("no", "No").with_code(code);
            let unknown = Unknown {
                kind: "Web".to_owned(),
                version: "example.com/v1".to_owned(),
                source: Box::new(kube::Error::Api(Box::new(status))),
            };
            assert_eq!(unknown.is_answered(), answered, "{code}");
        }
    }

    #[test]
    fn the_usual_kinds_are_known_in_all_their_spellings() {
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
            let known = usual(version, spelled(kind)).map(|kind| kind.resource);
            let known = known.as_ref().map(|it| (&*it.kind, &*it.plural));
            assert_eq!(known, path, "{version} {kind}");
        }
    }
}
