//! The authorization decision: pure, over values.

use std::collections::BTreeMap;

use super::{
    AccessTarget, Attributes, Policy, PolicyRule, Requester,
    policy::{Binding, BindingSubject},
};

/// The result of an authorization decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    /// The reason; may be empty.
    pub reason: String,
}

/// The rules a user holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldRules {
    /// The rules of all their roles, in the order of the bindings' names.
    pub rules: Vec<PolicyRule>,
    /// Roles that bindings refer to and that do not exist: kind and name.
    pub missing: Vec<(&'static str, Box<str>)>,
}

/// Decides by `policy` whether `attributes` are allowed, with the reason.
pub fn decide(attributes: &Attributes<'_>, policy: &Policy) -> Decision {
    if attributes.who.is_master() {
        return Decision {
            allowed: true,
            reason: String::new(),
        };
    }
    match granting(attributes, policy) {
        Some(binding) => Decision {
            allowed: true,
            reason: because(binding, attributes.who),
        },
        None => Decision {
            allowed: false,
            reason: unresolved(attributes, policy),
        },
    }
}

/// As [`decide`], without the reason.
pub(super) fn allows(attributes: &Attributes<'_>, policy: &Policy) -> bool {
    attributes.who.is_master() || granting(attributes, policy).is_some()
}

/// The first binding that allows it.
fn granting<'a>(attributes: &Attributes<'a>, policy: &'a Policy) -> Option<&'a Binding> {
    let Attributes { who, verb, what } = *attributes;
    let mut bindings = policy.bindings(who, namespace(attributes));
    bindings.find(|binding| {
        let rules = policy.rules(&binding.role, &binding.namespace);
        rules.is_some_and(|rules| rules.iter().any(|rule| rule.matches(verb, &what)))
    })
}

fn namespace<'a>(attributes: &Attributes<'a>) -> &'a str {
    match attributes.what {
        AccessTarget::Resource { namespace, .. } => namespace,
        AccessTarget::Path(_) => "",
    }
}

/// `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"`.
fn because(binding: &Binding, who: Requester<'_>) -> String {
    let Binding {
        name,
        namespace,
        role,
        subjects,
    } = binding;
    let by = match &**namespace {
        "" => format!("ClusterRoleBinding \"{name}\""),
        namespace => format!("RoleBinding \"{name}/{namespace}\""),
    };
    let subject = subjects.iter().find(|subject| subject.is(who, namespace));
    let to = subject.map(|subject| named(subject, namespace));
    format!(
        "RBAC: allowed by {by} of {} \"{}\" to {}",
        role.kind,
        role.name,
        to.unwrap_or_default()
    )
}

fn named(subject: &BindingSubject, home: &str) -> String {
    let BindingSubject {
        kind,
        name,
        namespace,
    } = subject;
    match (&**kind, &**namespace) {
        ("ServiceAccount", "") => format!("{kind} \"{name}/{home}\""),
        ("ServiceAccount", namespace) => format!("{kind} \"{name}/{namespace}\""),
        _ => format!("{kind} \"{name}\""),
    }
}

/// The part of a refusal about roles that bindings refer to and that do not exist.
fn unresolved(attributes: &Attributes<'_>, policy: &Policy) -> String {
    let held = held(attributes.who, namespace(attributes), policy);
    match held.problems() {
        None => String::new(),
        Some(problems) => format!("RBAC: {problems}"),
    }
}

impl HeldRules {
    /// The missing roles as an error message, if there are any: one alone, several in brackets.
    pub fn problems(&self) -> Option<String> {
        let problem = |(kind, name): &(&str, Box<str>)| {
            format!("{kind}.rbac.authorization.k8s.io \"{name}\" not found")
        };
        let problems: Vec<String> = self.missing.iter().map(problem).collect();
        match problems.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }
}

/// The rules `who` holds in `namespace`, or cluster-wide if it is empty.
pub(super) fn held(who: Requester<'_>, namespace: &str, policy: &Policy) -> HeldRules {
    let bindings = policy.bindings(who, namespace);
    // A binding may name a user and their group; it counts once, in the order of names.
    let bindings: BTreeMap<_, _> = bindings
        .map(|binding| ((&binding.namespace, &binding.name), binding))
        .collect();
    let mut held = HeldRules::default();
    for binding in bindings.values() {
        if let Some(rules) = policy.rules(&binding.role, &binding.namespace) {
            held.rules.extend(rules.iter().cloned());
            continue;
        }
        let kind = match &*binding.role.kind {
            "ClusterRole" => "clusterrole",
            _ => "role",
        };
        held.missing.push((kind, binding.role.name.clone()));
    }
    held
}
