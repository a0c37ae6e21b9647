//! Nobody gives away what they do not have: checks on writes of roles and bindings, and on writes
//! that create what they did not find.

use serde::Deserialize;
use serde_json::Value;

use super::{Machine, Request, Served, Verb, admission::Change};
use crate::{
    access::{self, Attributes, RoleRef, What, Who, are_vast, full_authority, rules_of, uncovered},
    status::{ApiError, Problems, Result},
};

/// Said of a role that is too large to tell whether somebody holds all of it.
const VAST: &str = "the combinations of verbs, groups, resources and names are too many to compare with those held";

impl Machine {
    /// Refuses a PUT or an apply that would create an object of one who may not create it.
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

    /// Refuses a role or a binding that gives away more than its writer has.
    pub(super) fn check_grant(&self, change: Change<'_>, new: &Value) -> Result<()> {
        let Change {
            request,
            served,
            old,
            ..
        } = change;
        let who = request.user.who();
        if served.resource.group != access::GROUP || who.is_master() {
            return Ok(());
        }
        // Whoever takes leave of an object, or cleans up after its owner, gives nothing away.
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
        if are_vast(&rules) {
            let mut problems = Problems::new();
            problems.forbidden("rules", VAST);
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
            // Validation says which there are.
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
        // Other servers name the binding's resource here, with the role's name.
        let rules = self.access.rules_of(&role, namespace);
        let rules = rules.ok_or_else(|| served.not_found(&role.name))?;
        if are_vast(&rules) {
            return Err(refusal(served, name_of(new), VAST));
        }
        let held = self.access.held(who, namespace);
        match held.escalation(who, &rules) {
            Some(why) => Err(refusal(served, name_of(new), &why)),
            None => Ok(()),
        }
    }
}

/// Whether `who` may bind a role without having what it gives.
fn binding<'a>(
    who: Who<'a>,
    resource: &'a str,
    name: &'a str,
    namespace: &'a str,
) -> Attributes<'a> {
    Attributes {
        who,
        verb: "bind",
        what: What::Resource {
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

/// Whether nothing changes but what garbage collection looks at.
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
