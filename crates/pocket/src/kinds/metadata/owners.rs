//! Validation of owner references.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    kinds::fields::{flag, text},
    status::Problems,
};

const PATH: &str = "metadata.ownerReferences";

/// Drops duplicate references, and returns the warning.
pub fn dedup_owners(object: &mut Value) -> Option<String> {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")?
        .as_array_mut()?;
    let mut seen: HashSet<&Value> = HashSet::with_capacity(owners.len());
    let first: Vec<bool> = owners.iter().map(|owner| seen.insert(owner)).collect();
    if seen.len() == owners.len() {
        return None;
    }
    let mut twice: Vec<String> = Vec::new();
    let mut first = first.into_iter();
    owners.retain(|owner| {
        let again = !first.next().unwrap_or(true);
        if again {
            twice.push(text(owner, "uid").to_owned());
        }
        !again
    });
    twice.dedup();
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

pub(super) fn check(owners: &[Value], problems: &mut Problems) {
    let mut controller: Option<&Value> = None;
    for owner in owners {
        check_one(owner, problems);
        if !flag(owner, "controller") {
            continue;
        }
        if let Some(first) = controller
            && !problems.is_full()
        {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                named(first),
                named(owner)
            );
            problems.invalid_as(PATH, &in_order(owners), &detail);
        }
        controller = Some(owner);
    }
}

/// The references as a warning shows them: with fields in declaration order, not in key order.
fn in_order(owners: &[Value]) -> String {
    const FIELDS: [&str; 6] = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let shown = owners.iter().map(|owner| {
        let fields = FIELDS.iter().filter_map(|field| {
            let value = owner.get(*field)?;
            Some(format!("{field:?}:{value}"))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

fn named(owner: &Value) -> String {
    format!("{}/{}", text(owner, "kind"), text(owner, "name"))
}

fn check_one(owner: &Value, problems: &mut Problems) {
    let version = text(owner, "apiVersion");
    if version.rsplit('/').next().is_none_or(str::is_empty) {
        let path = format!("{PATH}.apiVersion");
        problems.invalid(path, version, "version must not be empty");
    }
    for field in ["kind", "name", "uid"] {
        if text(owner, field).is_empty() {
            problems.invalid(format!("{PATH}.{field}"), "", "must not be empty");
        }
    }
    // Events expire; nothing may depend on one.
    if text(owner, "kind") == "Event" && matches!(version, "v1" | "events.k8s.io/v1") {
        let detail = format!("{version}, Kind=Event is disallowed from being an owner");
        problems.invalid(PATH, owner.clone(), detail);
    }
}
