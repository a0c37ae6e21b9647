//! ResourceQuota: limits on what a namespace may hold.

mod charge;
mod scope;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::usage::{Amounts, add, amounts, quantity, sum};
use crate::quantity::{Format, Quantity};

pub use charge::charge;
pub use scope::covers;

/// A resource that a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedResource<'a> {
    /// API group.
    pub group: &'a str,
    /// Plural name.
    pub plural: &'a str,
}

/// The resource whose objects are counted by one entry of `hard`.
pub fn counted(entry: &str) -> Option<CountedResource<'_>> {
    const CLASS: &str = ".storageclass.storage.k8s.io/";
    let core = |plural| Some(CountedResource { group: "", plural });
    if let Some(counted) = entry.strip_prefix("count/") {
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        return Some(CountedResource { group, plural });
    }
    if entry.contains(CLASS) {
        return core("persistentvolumeclaims");
    }
    match entry {
        "configmaps" => core("configmaps"),
        "secrets" => core("secrets"),
        "replicationcontrollers" => core("replicationcontrollers"),
        "resourcequotas" => core("resourcequotas"),
        "services" | "services.nodeports" | "services.loadbalancers" => core("services"),
        "persistentvolumeclaims" | "requests.storage" => core("persistentvolumeclaims"),
        "pods" | "cpu" | "memory" | "ephemeral-storage" => core("pods"),
        other if other.starts_with("requests.") || other.starts_with("limits.") => core("pods"),
        other if other.starts_with("hugepages-") => core("pods"),
        _ => None,
    }
}

/// What a quota has used of its `hard` entries, given the objects of each resource.
pub fn used(quota: &Value, objects: &dyn Fn(CountedResource<'_>) -> Vec<Value>) -> Amounts {
    let hard = amounts(&quota["spec"]["hard"]);
    let mut used: Amounts = hard
        .keys()
        .filter(|entry| counted(entry).is_some())
        .map(|entry| (entry.clone(), Quantity::whole(0, Format::DecimalSi)))
        .collect();
    let mut resources: Vec<CountedResource<'_>> = Vec::new();
    for resource in hard.keys().filter_map(|entry| counted(entry)) {
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    for resource in resources {
        for object in objects(resource) {
            if !covers(quota, resource, &object) {
                continue;
            }
            for (entry, amount) in charge(resource, &object) {
                if let Some(total) = used.get_mut(&entry) {
                    *total = sum(*total, amount);
                }
            }
        }
    }
    used
}

/// What a write would add to a quota: only entries of `hard`, and only increases.
pub fn growth(
    quota: &Value,
    resource: CountedResource<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Amounts {
    let hard = amounts(&quota["spec"]["hard"]);
    let of = |object: &Value| {
        if covers(quota, resource, object) {
            charge(resource, object)
        } else {
            Amounts::new()
        }
    };
    let before = old.map(of).unwrap_or_default();
    let mut growth = Amounts::new();
    for (entry, amount) in of(new) {
        if !hard.contains_key(&entry) {
            continue;
        }
        let more = match before.get(&entry) {
            Some(before) => amount.minus(*before),
            None => amount,
        };
        if !more.is_zero() && !more.is_negative() {
            growth.insert(entry, more);
        }
    }
    growth
}

/// Adds growth to the used amounts.
pub fn spend(used: &mut Amounts, growth: &Amounts) {
    add(used, growth);
}

/// Why a quota does not allow this growth; `None` if it does.
pub fn exceeded(quota: &Value, used: &Amounts, growth: &Amounts) -> Option<String> {
    let hard = amounts(&quota["spec"]["hard"]);
    let zero = Quantity::whole(0, Format::DecimalSi);
    let mut over: BTreeMap<&str, [Quantity; 3]> = BTreeMap::new();
    for (entry, more) in growth {
        let Some(limit) = hard.get(entry) else {
            continue;
        };
        let before = used.get(entry).copied().unwrap_or(zero);
        if sum(before, *more) > *limit {
            over.insert(entry, [*more, before, *limit]);
        }
    }
    if over.is_empty() {
        return None;
    }
    let column = |index: usize| -> String {
        let rows = over
            .iter()
            .map(|(entry, row)| format!("{entry}={}", row[index]));
        rows.collect::<Vec<_>>().join(",")
    };
    Some(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        name(quota),
        column(0),
        column(1),
        column(2)
    ))
}

/// The requests or limits that a new pod must set because a quota counts them, and does not set.
pub fn unsaid(quota: &Value, pod: &Value) -> Option<String> {
    let resource = CountedResource {
        group: "",
        plural: "pods",
    };
    if !covers(quota, resource, pod) {
        return None;
    }
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let hard = quota["spec"]["hard"].as_object().into_iter().flatten();
    for (entry, _) in hard {
        let (side, amount) = match entry.split_once('.') {
            Some(("limits", amount)) => ("limits", amount),
            Some(("requests", amount)) if amount != "storage" => ("requests", amount),
            None if matches!(entry.as_str(), "cpu" | "memory") => ("requests", entry.as_str()),
            _ => continue,
        };
        if !matches!(amount, "cpu" | "memory") {
            continue;
        }
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array().into_iter().flatten() {
                if quantity(&container["resources"][side][amount]).is_none() {
                    let name = container["name"].as_str().unwrap_or_default();
                    missing.entry(entry).or_default().push(name);
                }
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let told: Vec<String> = missing
        .iter()
        .map(|(entry, containers)| format!("{entry} for: {}", containers.join(",")))
        .collect();
    Some(format!(
        "failed quota: {}: must specify {}",
        name(quota),
        told.join("; ")
    ))
}

/// The status of a quota with these used amounts.
pub fn status(quota: &Value, used: &Amounts) -> Value {
    let shown: Map<String, Value> = used
        .iter()
        .map(|(entry, amount)| (entry.clone(), json!(amount.to_string())))
        .collect();
    json!({"hard": quota["spec"]["hard"], "used": shown})
}

fn name(quota: &Value) -> &str {
    quota["metadata"]["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
