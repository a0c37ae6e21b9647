//! Privilege escalation checks on writes of roles and bindings, and on writes that create a missing
//! object. A user may only grant permissions that they hold themselves.

use serde::Deserialize;
use serde_json::Value;

use super::{Machine, Request, Served, Verb, admission::AdmissionWrite};
use crate::{
    access::{
        self, AccessTarget, Attributes, Requester, RoleRef, are_too_many, full_authority, rules_of,
        uncovered,
    },
    status::{ApiError, Problems, Result},
};

/// The error for a role that is too large to compare.
const TOO_MANY_RULES: &str = "the combinations of verbs, groups, resources and names are too many to compare with those held";

impl Machine {
    /// Refuses a PUT or an apply that would create an object, if the user may not create it.
    pub(super) fn check_may_create(&self, request: &Request) -> Result<()> {
        if request.verb == Verb::Create {
            return Ok(());
        }
        let create = request.attributes(Verb::Create.name());
        if self.access.allows(&create) {
            return Ok(());
        }
        Err(create.forbidden(&self.access.decide(&create).reason))
    }

    /// Refuses a role or a binding that grants more than its writer holds.
    pub(super) fn check_grant(&self, change: AdmissionWrite<'_>, new: &Value) -> Result<()> {
        let AdmissionWrite {
            request,
            served,
            old,
            ..
        } = change;
        let who = request.user.who();
        if served.resource.group != access::GROUP || who.is_master() {
            return Ok(());
        }
        // Removing finalizers or owner references grants nothing.
        if old.is_some_and(|old| only_for_garbage_collection(new, old)) {
            return Ok(());
        }
        match &*served.resource.plural {
            "roles" | "clusterroles" => self.check_role(request, served, new, old),
            "rolebindings" | "clusterrolebindings" => self.check_binding(request, served, new),
            _ => Ok(()),
        }
    }

    fn check_role(
        &self,
        request: &Request,
        served: &Served,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<()> {
        if self.access.allows(&request.attributes("escalate")) {
            return Ok(());
        }
        let who = request.user.who();
        let held = self.access.held(who, &request.target.namespace);
        let name = name_of(new);
        let rules = rules_of(&new["rules"]);
        if are_too_many(&rules) {
            let mut problems = Problems::new();
            problems.forbidden("rules", TOO_MANY_RULES);
            return served.refuse(name, &problems);
        }
        if let Some(why) = held.escalation(who, &rules) {
            return Err(refusal(served, name, &why));
        }
        let aggregates = |role: &Value| !role["aggregationRule"].is_null();
        let takes = aggregates(new) || old.is_some_and(aggregates);
        if takes && !uncovered(&held.rules, &full_authority()).is_empty() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(refusal(served, name, why));
        }
        Ok(())
    }

    fn check_binding(&self, request: &Request, served: &Served, new: &Value) -> Result<()> {
        let role = RoleRef::deserialize(&new["roleRef"]).unwrap_or_default();
        let plural = match &*role.kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            // Validation refuses other kinds.
            _ => return Ok(()),
        };
        let who = request.user.who();
        let namespace = &request.target.namespace;
        if self
            .access
            .allows(&binding(who, plural, &role.name, namespace))
        {
            return Ok(());
        }
        // kube-apiserver names the binding's resource here, with the role's name.
        let rules = self.access.rules_of(&role, namespace);
        let rules = rules.ok_or_else(|| served.not_found(&role.name))?;
        if are_too_many(&rules) {
            return Err(refusal(served, name_of(new), TOO_MANY_RULES));
        }
        let held = self.access.held(who, namespace);
        match held.escalation(who, &rules) {
            Some(why) => Err(refusal(served, name_of(new), &why)),
            None => Ok(()),
        }
    }
}

/// Whether `who` may bind a role without holding its permissions.
fn binding<'a>(
    who: Requester<'a>,
    resource: &'a str,
    name: &'a str,
    namespace: &'a str,
) -> Attributes<'a> {
    Attributes {
        who,
        verb: "bind",
        what: AccessTarget::Resource {
            group: access::GROUP,
            resource,
            subresource: "",
            name,
            namespace,
        },
    }
}

fn refusal(served: &Served, name: &str, why: &str) -> ApiError {
    ApiError::forbidden(&served.resource.group, &served.resource.plural, name, why)
}

fn name_of(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether only finalizers and owner references change.
fn only_for_garbage_collection(new: &Value, old: &Value) -> bool {
    let rest = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        value
    };
    rest(new) == rest(old)
}
