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
