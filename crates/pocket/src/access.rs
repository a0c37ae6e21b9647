//! Authorization by RBAC: roles, bindings, and the decision that every request and every access
//! review uses.
//!
//! Depends on `store`, whose commits it follows; `rest` depends on it. Deciding takes values and
//! returns values ([`decide`]); [`Authorizer`] keeps the [`Policy`] in step with the store: a role or
//! binding is in force before the write that made it is answered.
//!
//! A decision considers only the bindings that name the requesting user or one of their groups, in
//! the namespace of the request and cluster-wide.

mod aggregate;
mod attributes;
pub mod bootstrap;
mod decision;
mod escalation;
mod policy;
mod rule;

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use serde_json::{Map, Value};

use crate::store::{Change, Object, Store};

pub use crate::identity::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED};

pub use aggregate::{aggregated, are_same};
pub use attributes::{AccessTarget, Attributes, Requester};
pub use decision::{Decision, HeldRules, decide};
pub use escalation::{are_too_many, full_authority, uncovered};
pub use policy::{Policy, PolicyUpdate, RoleRef};
pub use rule::{PolicyRule, rules_of};

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Bucket of cluster roles in the store.
pub const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
/// Bucket of roles in the store.
pub const ROLES: &str = "rbac.authorization.k8s.io/roles";
/// Bucket of cluster role bindings in the store.
pub const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
/// Bucket of role bindings in the store.
pub const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";

/// The policy in force, as the store's commits make it.
#[derive(Clone, Default)]
pub struct Authorizer {
    policy: Arc<RwLock<Policy>>,
}

impl Authorizer {
    /// Loads the store's roles and bindings, and follows each change of them as it is committed.
    pub fn follow(&self, store: &Store) {
        type ParseUpdate = fn(Change, &Object) -> PolicyUpdate;
        let resources: [(&str, ParseUpdate); 4] = [
            (CLUSTER_ROLES, PolicyUpdate::cluster_role),
            (ROLES, PolicyUpdate::role),
            (CLUSTER_ROLE_BINDINGS, PolicyUpdate::binding),
            (ROLE_BINDINGS, PolicyUpdate::binding),
        ];
        for (resource, read) in resources {
            let policy = self.policy.clone();
            let follower = move |change, object: &Object| {
                let update = read(change, object);
                policy.write().take(update);
            };
            store.follow(resource, Box::new(follower));
        }
    }

    /// Decides whether the request is allowed, with the reason.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        decide(attributes, &self.policy.read())
    }

    /// Decides whether the request is allowed.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        decision::allows(attributes, &self.policy.read())
    }

    /// The rules a user holds in a namespace, or cluster-wide if `namespace` is empty.
    pub fn held(&self, who: Requester<'_>, namespace: &str) -> HeldRules {
        decision::held(who, namespace, &self.policy.read())
    }

    /// The rules of a role that a binding in `namespace` refers to, if there is one.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Arc<[PolicyRule]>> {
        self.policy.read().rules(role, namespace).cloned()
    }

    /// Names of the cluster roles with an aggregation rule.
    pub(crate) fn aggregating(&self) -> Vec<Box<str>> {
        let policy = self.policy.read();
        policy.aggregating().map(Into::into).collect()
    }

    /// The rules that the cluster role `name` aggregates from others by these selectors.
    pub(crate) fn gathered(&self, name: &str, selectors: &[Value]) -> Vec<PolicyRule> {
        let policy = self.policy.read();
        let others = policy.cluster_roles().filter(|(other, ..)| *other != name);
        let others = others.map(|(_, labels, rules)| (labels, rules));
        aggregated(selectors, &others)
    }
}

/// A role as aggregation sees it: its labels and its rules.
pub type LabelledRules<'a> = (&'a Map<String, Value>, &'a [PolicyRule]);

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
