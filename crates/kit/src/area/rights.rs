//! What the processes of an area may do in a cluster, as RBAC objects.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

/// Verbs on resources of one API group. There is no `*`: what is granted can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Resources and subresources: `pods`, `pods/log`.
    pub resources: &'static [&'static str],
    /// Verbs in lower case.
    pub verbs: &'static [&'static str],
}

impl Right {
    /// Verbs on resources of one API group.
    pub const fn new(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            group,
            resources,
            verbs,
        }
    }

    /// The rule of a Role.
    pub fn rule(&self) -> PolicyRule {
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(owned(self.resources)),
            verbs: owned(self.verbs),
            ..PolicyRule::default()
        }
    }
}

/// Where a role applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleScope {
    /// In all namespaces, and for objects in none.
    Cluster,
    /// In the namespace of the process, for example for its lease.
    OwnNamespace,
}

/// What one process of an area may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The name of the objects: `neap-release-controller`.
    pub name: &'static str,
    /// Where the rights apply.
    pub scope: RoleScope,
    /// The ServiceAccount of the process.
    pub account: &'static str,
    /// The rights.
    pub rights: &'static [Right],
}

impl Role {
    /// The role and its binding to the account, which is in `namespace`.
    pub fn objects(&self, namespace: &str) -> [Value; 2] {
        let (role, binding) = match self.scope {
            RoleScope::Cluster => ("ClusterRole", "ClusterRoleBinding"),
            RoleScope::OwnNamespace => ("Role", "RoleBinding"),
        };
        let mut metadata = json!({"name": self.name});
        if self.scope == RoleScope::OwnNamespace {
            metadata["namespace"] = namespace.into();
        }
        let rules: Vec<_> = self.rights.iter().map(Right::rule).collect();
        let version = "rbac.authorization.k8s.io/v1";
        [
            json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": version, "kind": binding, "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": self.name},
                "subjects": [{"kind": "ServiceAccount", "name": self.account, "namespace": namespace}],
            }),
        ]
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let wide = |words: &[&str]| words.iter().any(|word| *word == "*" || word.is_empty());
        let rights = self.rights.iter().filter(|right| {
            right.group == "*"
                || wide(right.resources)
                || wide(right.verbs)
                || right.resources.is_empty()
                || right.verbs.is_empty()
        });
        rights
            .map(|right| {
                format!(
                    "the role {} has a right with * or without words: {right:?}",
                    self.name
                )
            })
            .collect()
    }
}
