//! Who may do what: roles, bindings, and the decision that every request and every review asks for.
//!
//! Lies above `store`, whose commits it follows, and below `rest`, which asks. Deciding takes
//! values and returns values ([`decide`]); [`Access`] keeps the [`Policy`] that is decided by in
//! step with the store: a role or binding is in force before the write that made it is answered.
//!
//! A decision looks at the bindings that name the asker or one of their groups, in the namespace
//! that is asked about and cluster-wide, and at no others.

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
pub use attributes::{Attributes, What, Who};
pub use decision::{Decision, Held, decide};
pub use escalation::{are_vast, full_authority, uncovered};
pub use policy::{Policy, RoleRef, Update};
pub use rule::{Rule, rules_of};

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Where cluster roles are stored.
pub const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
/// Where roles are stored.
pub const ROLES: &str = "rbac.authorization.k8s.io/roles";
/// Where cluster role bindings are stored.
pub const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
/// Where role bindings are stored.
pub const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";

/// The policy in force, as the store's commits make it.
#[derive(Clone, Default)]
pub struct Access {
    policy: Arc<RwLock<Policy>>,
}

impl Access {
    /// Takes in what a store has of roles and bindings, and each change of them as it is committed.
    pub fn follow(&self, store: &Store) {
        type Read = fn(Change, &Object) -> Update;
        let resources: [(&str, Read); 4] = [
            (CLUSTER_ROLES, Update::cluster_role),
            (ROLES, Update::role),
            (CLUSTER_ROLE_BINDINGS, Update::binding),
            (ROLE_BINDINGS, Update::binding),
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

    /// Whether this may be done, with the reason.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        decide(attributes, &self.policy.read())
    }

    /// Whether this may be done.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        decision::allows(attributes, &self.policy.read())
    }

    /// What somebody may do in a namespace, or everywhere if it is empty.
    pub fn held(&self, who: Who<'_>, namespace: &str) -> Held {
        decision::held(who, namespace, &self.policy.read())
    }

    /// The rules of a role that a binding in `namespace` refers to, if there is one.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Arc<[Rule]>> {
        self.policy.read().rules(role, namespace).cloned()
    }

    /// Cluster roles that take their rules from others.
    pub(crate) fn aggregating(&self) -> Vec<Box<str>> {
        let policy = self.policy.read();
        policy.aggregating().map(Into::into).collect()
    }

    /// The rules that the cluster role `name` takes from others by these selectors.
    pub(crate) fn gathered(&self, name: &str, selectors: &[Value]) -> Vec<Rule> {
        let policy = self.policy.read();
        let others = policy.cluster_roles().filter(|(other, ..)| *other != name);
        let others = others.map(|(_, labels, rules)| (labels, rules));
        aggregated(selectors, &others)
    }
}

/// A role as aggregation sees it: its labels and its rules.
pub type Labelled<'a> = (&'a Map<String, Value>, &'a [Rule]);

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
