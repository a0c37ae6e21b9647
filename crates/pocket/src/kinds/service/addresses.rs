//! Allocation of Service addresses: one from the range each, chosen or requested.

use std::{collections::HashSet, net::Ipv4Addr};

use serde_json::{Value, json};

use super::{OtherServices, has_address, is_headless};
use crate::{
    kinds::{
        fields::{list, set, text},
        names,
    },
    status::Problems,
};

/// Gives the Service its address, unless its type has none or it has one already.
pub(super) fn allocate(
    spec: &mut Value,
    old: Option<&Value>,
    neighbours: &OtherServices<'_>,
    problems: &mut Problems,
) {
    let held = old.is_some_and(has_address);
    if held || !has_address(spec) || is_headless(spec) {
        return;
    }
    let range = AddressRange::new(neighbours.cluster.settings().service_range);
    match text(spec, "clusterIP") {
        "" => {
            let given = if neighbours.cluster.is_dry_run() {
                Ok(Ipv4Addr::from(range.network))
            } else {
                draw(&range, neighbours)
            };
            match given {
                Ok(address) => {
                    let address = address.to_string();
                    set(spec, "clusterIPs", json!([address]));
                    set(spec, "clusterIP", address);
                }
                Err(why) => {
                    let detail = format!("failed to allocate IP: {why}");
                    problems.invalid("spec.clusterIPs", json!([""]), detail);
                }
            }
        }
        asked => {
            if let Some(why) = refusal(asked, &range, neighbours) {
                let detail = format!("failed to allocate IP {asked}: {why}");
                problems.invalid("spec.clusterIPs", list(spec, "clusterIPs"), detail);
            }
        }
    }
}

/// The first address of a range that a Service may have.
pub(in crate::kinds) fn first_address(range: (Ipv4Addr, u8)) -> Ipv4Addr {
    Ipv4Addr::from(AddressRange::new(range).network.wrapping_add(1))
}

fn draw(range: &AddressRange, neighbours: &OtherServices<'_>) -> Result<Ipv4Addr, String> {
    let free = range.free_from(neighbours.start, &taken(neighbours));
    let free = free.ok_or_else(|| "range is full".to_owned())?;
    unnamable(neighbours.name, free).map_or(Ok(free), Err)
}

fn refusal(asked: &str, range: &AddressRange, neighbours: &OtherServices<'_>) -> Option<String> {
    // An invalid address was refused before.
    let address: Ipv4Addr = asked.parse().ok()?;
    if neighbours.cluster.is_dry_run() {
        return (!range.holds(address)).then(|| {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
            )
        });
    }
    if !range.holds(address) {
        return Some("the provided network does not match the current range".to_owned());
    }
    if let Some(why) = unnamable(neighbours.name, address) {
        return Some(why);
    }
    let used = taken(neighbours).contains(&address);
    used.then(|| "provided IP is already allocated".to_owned())
}

/// Why no address can be allocated for a Service of this name. In kube-apiserver each address is an
/// object that names the Service, and an invalid one is refused first.
fn unnamable(name: &str, address: Ipv4Addr) -> Option<String> {
    const PATH: &str = "spec.parentRef.name";
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.required(PATH, "");
    } else if let Some(why) = names::path_problem(name) {
        problems.invalid(PATH, name, why);
    }
    let why = problems.iter().next()?;
    Some(format!(
        "IPAddress.networking.k8s.io \"{address}\" is invalid: {why}"
    ))
}

fn taken(neighbours: &OtherServices<'_>) -> HashSet<Ipv4Addr> {
    let others = neighbours.all();
    let addresses = others.iter().map(|other| text(&other["spec"], "clusterIP"));
    addresses
        .filter_map(|address| address.parse().ok())
        .collect()
}

/// The addresses that Services may have: all of the range but its first and last.
struct AddressRange {
    network: u32,
    prefix: u8,
}

impl AddressRange {
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

    /// The low addresses are left for explicit requests, as long as there are others.
    fn free_from(&self, start: usize, taken: &HashSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        let size = self.size();
        let band = (size / 16).clamp(16, 256).min(size);
        let high = size - band.min(size - 1) - 1;
        let start = (start as u64).checked_rem(high).unwrap_or_default();
        let offsets = (0..high).map(|step| band + 1 + (start + step) % high);
        offsets
            .chain(1..=band)
            .map(|offset| Ipv4Addr::from(self.network.wrapping_add(offset as u32)))
            .find(|address| self.holds(*address) && !taken.contains(address))
    }
}

impl std::fmt::Display for AddressRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.prefix)
    }
}
