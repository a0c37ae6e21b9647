//! The order of groups, and of the versions of a group.

use std::cmp::Ordering;

use super::{Group, builtins};

/// Puts groups and their versions in the order they are published: built-in groups as a
/// Kubernetes server has them, then the others by name; versions by [`compare_versions`].
pub fn sort(groups: &mut [Group]) {
    let rank = |name: &str| {
        let place = builtins().iter().position(|builtin| builtin.group == name);
        place.unwrap_or(usize::MAX)
    };
    groups.sort_by_cached_key(|group| (rank(&group.name), group.name.clone()));
    for group in groups {
        group
            .versions
            .sort_by(|a, b| compare_versions(&a.name, &b.name));
    }
}

/// Orders version names, the preferred one first: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`,
/// then all other names alphabetically.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stability, major number, number within the stability: greater is better.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, suffix) = rest.split_at(end);
    let major = number(major)?;
    if suffix.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = suffix.strip_prefix("beta") {
        return Some((1, major, number(minor)?));
    }
    Some((0, major, number(suffix.strip_prefix("alpha")?)?))
}

fn number(text: &str) -> Option<u64> {
    if text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
