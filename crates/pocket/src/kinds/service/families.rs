//! The IP families of a Service: which it has, and whether it may have two.
//!
//! This server has one family. A headless Service with no selector may still name both: the writer
//! of its endpoints decides.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{has_address, is_headless, related};
use crate::{
    kinds::fields::{append, entries, is_set, list, set, text},
    status::Problems,
};

const SINGLE: &str = "SingleStack";
const REQUIRED: &str = "RequireDualStack";
const PREFERRED: &str = "PreferDualStack";

/// Sets the policy and the families. An error stops the write before other validation.
pub(super) fn settle(spec: &mut Value, old: Option<&Value>) -> Problems {
    let mut problems = Problems::new();
    if !has_address(spec) || old.is_some_and(|old| still_prefers_two(spec, old)) {
        return problems;
    }
    if !is_set(spec, "ipFamilyPolicy") {
        let policy = inferred_policy(spec, old);
        set(spec, "ipFamilyPolicy", policy);
    }
    related::check(spec, &mut problems);
    if !problems.is_empty() {
        return problems;
    }
    if let Some(old) = old {
        release_second(spec, old, &mut problems);
    }
    check_single(spec, &mut problems);
    infer_from_addresses(spec, &mut problems);
    if !problems.is_empty() {
        return problems;
    }
    if is_free(spec) {
        fill_free(spec);
        return problems;
    }
    check_served(spec, &mut problems);
    if problems.is_empty() && list(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    problems
}

/// Whether a Service that prefers two families is unchanged in that respect; then it is left alone.
fn still_prefers_two(spec: &Value, old: &Value) -> bool {
    let prefers = |spec: &Value| text(spec, "ipFamilyPolicy") == PREFERRED;
    let same = |field| list(spec, field) == list(old, field);
    prefers(spec)
        && prefers(old)
        && text(spec, "type") == text(old, "type")
        && same("clusterIPs")
        && same("ipFamilies")
}

fn is_free(spec: &Value) -> bool {
    text(spec, "clusterIP") == "None" && entries(spec, "selector").next().is_none()
}

fn inferred_policy(spec: &Value, old: Option<&Value>) -> Value {
    match old.and_then(|old| old.get("ipFamilyPolicy")) {
        Some(policy) if !policy.is_null() => policy.clone(),
        _ if is_free(spec) => REQUIRED.into(),
        _ => SINGLE.into(),
    }
}

/// Drops the second family when the Service changes to a single one, and in no other case.
fn release_second(spec: &mut Value, old: &Value, problems: &mut Problems) {
    let (now, before) = (list(spec, "ipFamilies"), list(old, "ipFamilies"));
    let policy = text(spec, "ipFamilyPolicy");
    if policy == SINGLE {
        let untouched = now == before && list(spec, "clusterIPs") == list(old, "clusterIPs");
        if untouched && now.len() > 1 {
            let first = vec![now[0].clone()];
            set(spec, "ipFamilies", first);
        }
    } else if !now.is_empty() && now.len() < before.len() {
        let detail = "must be 'SingleStack' to release the secondary IP family";
        problems.invalid("spec.ipFamilyPolicy", policy, detail);
    }
}

fn check_single(spec: &Value, problems: &mut Problems) {
    if text(spec, "ipFamilyPolicy") != SINGLE {
        return;
    }
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if list(spec, field).len() > 1 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            problems.invalid("spec.ipFamilyPolicy", SINGLE, detail);
        }
    }
}

fn infer_from_addresses(spec: &mut Value, problems: &mut Problems) {
    if is_headless(spec) {
        return;
    }
    let addresses = list(spec, "clusterIPs").to_vec();
    let known = list(spec, "ipFamilies").len();
    for (index, address) in addresses.iter().enumerate().skip(known) {
        match address.as_str().and_then(|text| text.parse().ok()) {
            Some(IpAddr::V6(_)) => {
                let path = format!("spec.clusterIPs[{index}]");
                let detail = "IPv6 is not configured on this cluster";
                problems.invalid(path, addresses.clone(), detail);
            }
            Some(IpAddr::V4(_)) => append(spec, "ipFamilies", [json!("IPv4")]),
            None => {}
        }
    }
}

/// Sets the families of a headless Service without a selector: those it names, or both.
fn fill_free(spec: &mut Value) {
    if list(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    let named = list(spec, "ipFamilies");
    if text(spec, "ipFamilyPolicy") != SINGLE && named.len() < 2 {
        let other = if named[0] == "IPv4" { "IPv6" } else { "IPv4" };
        append(spec, "ipFamilies", [json!(other)]);
    }
}

fn check_served(spec: &Value, problems: &mut Problems) {
    if text(spec, "ipFamilyPolicy") == REQUIRED {
        let detail = "this cluster is not configured for dual-stack services";
        problems.invalid("spec.ipFamilyPolicy", REQUIRED, detail);
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family == "IPv6" {
            let path = format!("spec.ipFamilies[{index}]");
            problems.invalid(path, "IPv6", "not configured on this cluster");
        }
    }
}
