//! Addresses that endpoints may not have, because no other node could reach them there.

use std::net::IpAddr;

use serde_json::Value;

use super::path::Path;
use crate::status::Problems;

const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";

/// Validates one address of an endpoint, except for loopback: that depends on the embedder.
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

/// Validates the syntax of an address.
pub(super) fn check_form(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let detail = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(_) => return,
        Err(_) if read_loosely(text).is_some() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    problems.invalid(path, text, detail);
}

/// Parses an address whose decimal parts may have leading zeros, as they once might.
pub(super) fn read_loosely(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let plain: Vec<&str> = text.split('.').map(without_zeros).collect();
    plain.join(".").parse().ok()
}

fn without_zeros(part: &str) -> &str {
    match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        rest => rest,
    }
}

/// Validates a block of addresses; `shown` is the text that was sent.
pub(super) fn check_block(text: &str, shown: &str, path: &Path<'_>, problems: &mut Problems) {
    const FORM: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let parts = text.split_once('/').and_then(|(address, prefix)| {
        let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let read = (read_loosely(address)?, prefix.parse::<u32>().ok()?);
        digits.then_some(read)
    });
    let (bits, width, prefix) = match parts {
        Some((IpAddr::V4(v4), prefix)) if prefix <= 32 => (u128::from(v4.to_bits()), 32, prefix),
        Some((IpAddr::V6(v6), prefix)) if prefix <= 128 => (v6.to_bits(), 128, prefix),
        _ => return problems.invalid(path, shown, FORM),
    };
    if let Some((IpAddr::V6(v6), _)) = parts
        && v6.to_ipv4_mapped().is_some()
    {
        let detail = "must not have an IPv4-mapped IPv6 address";
        return problems.invalid(path, shown, detail);
    }
    let padded = |part: &str| part.len() > 1 && part.starts_with('0');
    let mut decimals = text.split(['.', '/']).skip(usize::from(width == 128));
    if decimals.any(padded) {
        let detail = "must not have leading 0s in IP or prefix length";
        return problems.invalid(path, shown, detail);
    }
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

/// Refuses loopback addresses, for embedders whose pods are not local processes.
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
