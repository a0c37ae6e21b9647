//! Validation of the addresses and families of a Service together. It runs before addresses are
//! allocated, and again for the whole Service.

use std::{collections::HashSet, net::IpAddr};

use serde_json::Value;

use super::{has_address, is_headless};
use crate::{
    kinds::{
        address,
        fields::{is_set, list, text},
        path::Path,
    },
    status::Problems,
};

const ADDRESSES: Path<'_> = Path::At("spec.clusterIPs");
const FAMILIES: Path<'_> = Path::At("spec.ipFamilies");

/// Reports contradictions.
pub(super) fn check(spec: &Value, problems: &mut Problems) {
    if !has_address(spec) {
        return;
    }
    check_primary(spec, problems);
    check_families(spec, problems);
    let addresses = list(spec, "clusterIPs");
    if !check_forms(addresses, problems) {
        return;
    }
    let v6 = |address: &Value| address.as_str().is_some_and(is_v6);
    if addresses.len() > 1 && (addresses.iter().all(v6) || !addresses.iter().any(v6)) {
        let detail = "may specify no more than one IP for each IP family";
        problems.invalid(ADDRESSES, addresses, detail);
    }
    if !is_headless(spec) {
        match_families(addresses, list(spec, "ipFamilies"), problems);
    }
}

fn check_primary(spec: &Value, problems: &mut Problems) {
    let addresses = list(spec, "clusterIPs");
    match (text(spec, "clusterIP"), addresses.first()) {
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            problems.invalid(ADDRESSES, addresses, detail);
        }
        ("", None) => {}
        (_, None) => problems.required(ADDRESSES, ""),
        (primary, Some(first)) if first != primary => {
            let detail = "first value must match `clusterIP`";
            problems.invalid(ADDRESSES, addresses, detail);
        }
        _ => {}
    }
}

fn check_families(spec: &Value, problems: &mut Problems) {
    let families = list(spec, "ipFamilies");
    let mut seen = HashSet::new();
    for (index, family) in families.iter().enumerate() {
        if family != "IPv4" && family != "IPv6" {
            let path = FAMILIES.index(index);
            problems.not_supported(path, family.clone(), &["IPv4", "IPv6"]);
        }
        if !seen.insert(family) {
            problems.duplicate(FAMILIES.index(index), family.clone());
        }
    }
    let policy = text(spec, "ipFamilyPolicy");
    let supported = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if is_set(spec, "ipFamilyPolicy") && !supported.contains(&policy) {
        problems.not_supported("spec.ipFamilyPolicy", policy, &supported);
    }
}

/// Whether each address is valid. If not, they are not compared with the families.
fn check_forms(addresses: &[Value], problems: &mut Problems) -> bool {
    let before = problems.len();
    for (index, value) in addresses.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        if index > 0 || value != "None" {
            address::check_form(value, &ADDRESSES.index(index), problems);
        } else if addresses.len() > 1 {
            let detail = "'None' must be the first and only value";
            problems.invalid(ADDRESSES, addresses, detail);
        }
    }
    let readable = problems.len() == before;
    if addresses.len() > 2 {
        problems.invalid(ADDRESSES, addresses, "may only hold up to 2 values");
    }
    readable
}

fn match_families(addresses: &[Value], families: &[Value], problems: &mut Problems) {
    for (index, (value, family)) in addresses.iter().zip(families).enumerate() {
        let value = value.as_str().unwrap_or_default();
        let fits = match family.as_str() {
            Some("IPv4") => !is_v6(value),
            Some("IPv6") => is_v6(value),
            _ => true,
        };
        if !fits {
            let family = family.as_str().unwrap_or_default();
            let detail =
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            problems.invalid(ADDRESSES.index(index), value, detail);
        }
    }
}

fn is_v6(address: &str) -> bool {
    address
        .parse()
        .is_ok_and(|address: IpAddr| address.is_ipv6())
}
