//! Warnings about Services.

use std::net::IpAddr;

use serde_json::Value;

use super::{HINTS, MODE, has_address};
use crate::kinds::{
    address,
    fields::{list, text},
};

pub(super) fn warnings(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let mut errors = Vec::new();
    let mut warn = |text: &str| errors.push(text.to_owned());
    if service["metadata"]["annotations"].get(HINTS).is_some() {
        warn(&format!(
            "annotation {HINTS} is deprecated, please use {MODE} instead"
        ));
    }
    if is_called_headless(spec) {
        warn_headless(spec, &mut warn);
    } else if has_address(spec) {
        warn_forms(spec, "clusterIPs", &mut warn);
    }
    if has_address(spec) {
        warn_forms(spec, "externalIPs", &mut warn);
        if !list(spec, "externalIPs").is_empty() && !is_called_headless(spec) {
            warn(
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            );
        }
    }
    if let Some(text) = odd_form(text(spec, "loadBalancerIP")) {
        warn(&format!("spec.loadBalancerIP: {text}"));
    }
    for (index, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        let range = range.as_str().unwrap_or_default().trim();
        if let Some(canonical) = canonical_block(range) {
            warn(&format!(
                "spec.loadBalancerSourceRanges[{index}]: IPv6 CIDR value \"{range}\" should be in \
                 RFC 5952 canonical format (\"{canonical}\")"
            ));
        }
    }
    if !has_address(spec) && !list(spec, "externalIPs").is_empty() {
        warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if has_address(spec) && !text(spec, "externalName").is_empty() {
        warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
    errors
}

/// Whether the author wrote `None`: warnings depend on the sent object, not on allocated values.
fn is_called_headless(spec: &Value) -> bool {
    text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None"
}

fn warn_headless(spec: &Value, warn: &mut impl FnMut(&str)) {
    if !text(spec, "loadBalancerIP").is_empty() {
        warn("spec.loadBalancerIP is ignored for headless services");
    }
    if !list(spec, "externalIPs").is_empty() {
        warn("spec.externalIPs is ignored for headless services");
    }
    if text(spec, "sessionAffinity") != "None" {
        warn("spec.SessionAffinity is ignored for headless services");
    }
}

fn warn_forms(spec: &Value, field: &str, warn: &mut impl FnMut(&str)) {
    for (index, entry) in list(spec, field).iter().enumerate() {
        if let Some(text) = odd_form(entry.as_str().unwrap_or_default()) {
            warn(&format!("spec.{field}[{index}]: {text}"));
        }
    }
}

/// The warning for an address in an unusual form; `None` for an invalid one.
fn odd_form(text: &str) -> Option<String> {
    let plain = address::read_loosely(text)?;
    let canonical = plain.to_canonical();
    let standard = text.parse() == Ok(plain) && canonical == plain;
    if !standard {
        return Some(format!(
            "non-standard IP address \"{text}\" is invalid: use \"{canonical}\""
        ));
    }
    (plain.is_ipv6() && plain.to_string() != text).then(|| {
        format!("IPv6 address \"{text}\" should be in RFC 5952 canonical format (\"{plain}\")")
    })
}

fn canonical_block(text: &str) -> Option<String> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let canonical = format!("{address}/{prefix}");
    (address.is_ipv6() && canonical != text).then_some(canonical)
}
