//! The addresses of Services: one from the range each, chosen or asked for.

use std::{collections::HashSet, net::Ipv4Addr};

use serde_json::{Value, json};

use super::{drop_fields, has_address, is_headless};
use crate::{
    kinds::fields::{entries, fill, list, set, text},
    status::{ApiError, Problems},
};

/// Gives the Service an address and settles its families. What it `held` before stays its own,
/// even if the range has changed since.
pub(super) fn allocate(
    spec: &mut Value,
    held: &Value,
    others: &[Value],
    range: (Ipv4Addr, u8),
    problems: &mut Problems,
) -> Result<(), ApiError> {
    if !has_address(spec) {
        drop_fields(spec, &["ipFamilies", "ipFamilyPolicy"]);
        return Ok(());
    }
    settle_families(spec, problems);
    if is_headless(spec) {
        return Ok(());
    }
    let range = Range::new(range);
    let taken = taken(others);
    match text(spec, "clusterIP") {
        "" => {
            let free = range.first_free(&taken).ok_or_else(|| {
                ApiError::internal("failed to allocate a serviceIP: range is full")
            })?;
            let address = free.to_string();
            set(spec, "clusterIPs", json!([address]));
            set(spec, "clusterIP", address);
        }
        asked if asked == text(held, "clusterIP") => {}
        asked => {
            if let Some(why) = refusal(asked, &range, &taken) {
                let detail = format!("failed to allocate IP {asked}: {why}");
                problems.invalid("spec.clusterIPs", spec["clusterIPs"].clone(), detail);
            }
        }
    }
    Ok(())
}

/// The first address of a range that a Service may have.
pub(in crate::kinds) fn first_address(range: (Ipv4Addr, u8)) -> Ipv4Addr {
    Ipv4Addr::from(Range::new(range).network.wrapping_add(1))
}

fn refusal(asked: &str, range: &Range, taken: &HashSet<Ipv4Addr>) -> Option<String> {
    // What is no address at all is refused by the rules on the object alone.
    let address: Ipv4Addr = asked.parse().ok()?;
    if !range.holds(address) {
        return Some("the provided network does not match the current range".to_owned());
    }
    let used = taken.contains(&address);
    used.then(|| "provided IP is already allocated".to_owned())
}

fn taken(others: &[Value]) -> HashSet<Ipv4Addr> {
    let addresses = others.iter().map(|other| text(&other["spec"], "clusterIP"));
    addresses
        .filter_map(|address| address.parse().ok())
        .collect()
}

/// This server has one family. A headless Service with no selector may still name both: whoever
/// writes its endpoints decides.
fn settle_families(spec: &mut Value, problems: &mut Problems) {
    let free = is_headless(spec) && entries(spec, "selector").next().is_none();
    if free && text(spec, "ipFamilyPolicy").is_empty() && list(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilyPolicy", "RequireDualStack");
        set(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        return;
    }
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if list(spec, "ipFamilies").is_empty() {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    if free {
        return;
    }
    if text(spec, "ipFamilyPolicy") == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        problems.invalid("spec.ipFamilyPolicy", "RequireDualStack", detail);
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family == "IPv6" {
            let path = format!("spec.ipFamilies[{index}]");
            problems.invalid(path, "IPv6", "not configured on this cluster");
        }
    }
}

/// The addresses that Services may have: all of the range but its first and last.
struct Range {
    network: u32,
    prefix: u8,
}

impl Range {
    fn new((first, prefix): (Ipv4Addr, u8)) -> Self {
        let prefix = prefix.min(32);
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self {
            network: u32::from(first) & mask,
            prefix,
        }
    }

    fn size(&self) -> u64 {
        1 << (32 - u64::from(self.prefix))
    }

    fn holds(&self, address: Ipv4Addr) -> bool {
        let offset = u64::from(u32::from(address).wrapping_sub(self.network));
        offset > 0 && offset + 1 < self.size()
    }

    /// The low addresses are left for those who ask by number, as long as there are others.
    fn first_free(&self, taken: &HashSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        let size = self.size();
        let band = (size / 16).clamp(16, 256).min(size);
        let offsets = (band + 1..size).chain(1..=band);
        offsets
            .map(|offset| Ipv4Addr::from(self.network.wrapping_add(offset as u32)))
            .find(|address| self.holds(*address) && !taken.contains(address))
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.prefix)
    }
}
