//! Validation of the DNS settings of a pod.

use serde_json::Value;

use crate::{
    kinds::{
        field_rules::obeys,
        fields::{is_set, list, text},
        names,
        path::Path,
    },
    status::Problems,
};

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_PATHS: usize = 32;
const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Validates the policy alone; an absent one was filled in.
pub(super) fn check_dns_policy(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let policy = text(spec, "dnsPolicy");
    if !policy.is_empty() && !POLICIES.contains(&policy) {
        problems.not_supported(path.field("dnsPolicy"), policy, &POLICIES);
    }
}

/// Validates `dnsConfig`, which replaces or extends the settings of the policy.
pub(super) fn check_dns(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("dnsConfig");
    let config = &spec["dnsConfig"];
    let servers = list(config, "nameservers");
    let place = path.field("nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if !is_set(spec, "dnsConfig") {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            problems.required(path, detail);
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            problems.required(place, detail);
            return;
        }
    }
    if servers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        problems.invalid(place, servers, detail);
    }
    for (index, server) in servers.iter().enumerate() {
        check_address(
            server.as_str().unwrap_or_default(),
            &place.index(index),
            problems,
        );
    }
    check_searches(config, &path.field("searches"), problems);
    let place = path.field("options");
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            problems.required(place.index(index), "must not be empty");
        }
    }
}

fn check_searches(config: &Value, path: &Path<'_>, problems: &mut Problems) {
    let searches = list(config, "searches");
    if searches.len() > MAX_SEARCH_PATHS {
        let detail = format!("must not have more than {MAX_SEARCH_PATHS} search paths");
        problems.invalid(path, searches, detail);
    }
    for (index, search) in searches.iter().enumerate() {
        let search = search.as_str().unwrap_or_default();
        if search != "." {
            let bare = search.strip_suffix('.').unwrap_or(search);
            for complaint in names::search_path(bare) {
                problems.invalid(path.index(index), bare, complaint);
            }
        }
    }
}

/// Validates `hostAliases`.
pub(super) fn check_host_aliases(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = all.index(index);
        check_address(text(alias, "ip"), &path.field("ip"), problems);
        let names = path.field("hostnames");
        for (index, name) in list(alias, "hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            obeys(names::subdomain, name, &names.index(index), problems);
        }
    }
}

fn check_address(address: &str, path: &Path<'_>, problems: &mut Problems) {
    crate::kinds::address::check_form(address, path, problems);
}
