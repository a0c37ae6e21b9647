//! Addresses that endpoints may not have, because no other node could reach them there.

use std::net::IpAddr;

use serde_json::Value;

use super::path::Path;
use crate::status::Problems;

const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";

/// Rules on one address of an endpoint, but for loopback: that depends on the embedder.
pub(super) fn check(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let Ok(address) = text.parse::<IpAddr>() else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        problems.invalid(path, text, detail);
        return;
    };
    if address.is_unspecified() {
        problems.invalid(path, text, "may not be unspecified (0.0.0.0 or ::)");
    } else if is_link_local(address) {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        problems.invalid(path, text, detail);
    } else if is_link_local_multicast(address) {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        problems.invalid(path, text, detail);
    }
}

/// Rules on the form of an address alone.
pub(super) fn check_form(text: &str, path: &Path<'_>, problems: &mut Problems) {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            let detail = "must not be an IPv4-mapped IPv6 address";
            return problems.invalid(path, text, detail);
        }
        Ok(_) => return,
        Err(_) => {}
    }
    let plain: Vec<&str> = text
        .split('.')
        .map(|part| part.trim_start_matches('0'))
        .collect();
    let padded = plain.len() == 4
        && text
            .split('.')
            .any(|part| part.len() > 1 && part.starts_with('0'));
    let detail = if padded {
        "must not have leading 0s"
    } else {
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    };
    problems.invalid(path, text, detail);
}

/// Rules on a block of addresses; `shown` is how it was written.
pub(super) fn check_block(text: &str, shown: &str, path: &Path<'_>, problems: &mut Problems) {
    const FORM: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let parts = text.split_once('/').and_then(|(address, prefix)| {
        Some((address.parse::<IpAddr>().ok()?, prefix.parse::<u32>().ok()?))
    });
    let (bits, width, prefix) = match parts {
        Some((IpAddr::V4(v4), prefix)) if prefix <= 32 => (u128::from(v4.to_bits()), 32, prefix),
        Some((IpAddr::V6(v6), prefix)) if prefix <= 128 => (v6.to_bits(), 128, prefix),
        _ => return problems.invalid(path, shown, FORM),
    };
    let beyond = 1_u128
        .checked_shl(width - prefix)
        .map_or(bits, |size| bits & (size - 1));
    if beyond != 0 {
        problems.invalid(
            path,
            shown,
            "must not have bits set beyond the prefix length",
        );
    }
}

/// The rule on loopback addresses, for embedders whose pods are not local processes.
pub(super) fn refuse_loopback(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    let text = value.as_str().unwrap_or_default();
    if text
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
    {
        problems.invalid(path, text, LOOPBACK);
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}
