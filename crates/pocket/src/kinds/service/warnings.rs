//! What the author of a Service should know.

use std::net::IpAddr;

use serde_json::Value;

use super::{HINTS, MODE, has_address};
use crate::kinds::{
    address,
    fields::{list, text},
};

pub(super) fn warnings(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let mut told = Vec::new();
    let mut tell = |text: &str| told.push(text.to_owned());
    if service["metadata"]["annotations"].get(HINTS).is_some() {
        tell(&format!(
            "annotation {HINTS} is deprecated, please use {MODE} instead"
        ));
    }
    if is_headless(spec) {
        tell_headless(spec, &mut tell);
    } else if has_address(spec) {
        tell_forms(spec, "clusterIPs", &mut tell);
    }
    if has_address(spec) {
        tell_forms(spec, "externalIPs", &mut tell);
        if !list(spec, "externalIPs").is_empty() && !is_headless(spec) {
            tell(
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            );
        }
    }
    if let Some(text) = odd_form(text(spec, "loadBalancerIP")) {
        tell(&format!("spec.loadBalancerIP: {text}"));
    }
    for (index, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        let range = range.as_str().unwrap_or_default().trim();
        if let Some(canonical) = canonical_block(range) {
            tell(&format!(
                "spec.loadBalancerSourceRanges[{index}]: IPv6 CIDR value \"{range}\" should be in \
                 RFC 5952 canonical format (\"{canonical}\")"
            ));
        }
    }
    if !has_address(spec) && !list(spec, "externalIPs").is_empty() {
        tell("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if has_address(spec) && !text(spec, "externalName").is_empty() {
        tell("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        tell("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
    told
}

fn is_headless(spec: &Value) -> bool {
    text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None"
}

fn tell_headless(spec: &Value, tell: &mut impl FnMut(&str)) {
    if !text(spec, "loadBalancerIP").is_empty() {
        tell("spec.loadBalancerIP is ignored for headless services");
    }
    if !list(spec, "externalIPs").is_empty() {
        tell("spec.externalIPs is ignored for headless services");
    }
    if text(spec, "sessionAffinity") != "None" {
        tell("spec.SessionAffinity is ignored for headless services");
    }
}

fn tell_forms(spec: &Value, field: &str, tell: &mut impl FnMut(&str)) {
    for (index, entry) in list(spec, field).iter().enumerate() {
        if let Some(text) = odd_form(entry.as_str().unwrap_or_default()) {
            tell(&format!("spec.{field}[{index}]: {text}"));
        }
    }
}

/// What is odd about how an address is written. Of what is no address, nothing is said.
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
