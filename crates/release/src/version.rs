//! Versions of releases: how they are read, ordered and incremented.

use std::cmp::Ordering;

use semver::{Prerelease, Version};

/// A version, read tolerantly first: spaces and a leading `v` are dropped, leading zeros too, and missing
/// parts are zero, though not before a prerelease.
pub fn parse(text: &str) -> Option<Version> {
    tolerant(text).or_else(|| Version::parse(text).ok())
}

fn tolerant(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() > 3 || (parts.len() < 3 && !rest.is_empty()) {
        return None;
    }
    parts.resize(3, "0");
    let mut tolerant = Vec::new();
    for part in parts {
        let digits = part.trim_start_matches('0');
        tolerant.push(if digits.is_empty() && !part.is_empty() {
            "0"
        } else {
            digits
        });
    }
    Version::parse(&format!("{}{rest}", tolerant.join("."))).ok()
}

/// Whether the text is a version by the letter.
pub fn is_strict(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// The order of release lists: versions before other names, higher ones first, equal ones by name with the
/// last name first.
pub fn newest_first(left: &str, right: &str) -> Ordering {
    let by_name = || right.cmp(left);
    match (parse(left), parse(right)) {
        (Some(a), Some(b)) => b.cmp_precedence(&a).then_with(by_name),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => by_name(),
    }
}

/// The next version: the last numeric part of the prerelease plus one, or else the patch. None if a
/// prerelease has no numeric part.
pub fn increment(version: &Version) -> Option<Version> {
    let mut next = version.clone();
    if version.pre.is_empty() {
        next.patch = version.patch.checked_add(1)?;
        return Some(next);
    }
    let mut parts: Vec<String> = version.pre.split('.').map(str::to_owned).collect();
    let last = parts
        .iter_mut()
        .rev()
        .find(|part| part.parse::<u64>().is_ok())?;
    *last = last.parse::<u64>().ok()?.checked_add(1)?.to_string();
    next.pre = Prerelease::new(&parts.join(".")).ok()?;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_tolerantly() {
        for (text, wanted) in [
            ("4.9.0", "4.9.0"),
            (" v4.09 ", "4.9.0"),
            ("4", "4.0.0"),
            ("4.10.0-rc.1", "4.10.0-rc.1"),
            (
                "4.9.0-0.ci-2021-08-30-130010",
                "4.9.0-0.ci-2021-08-30-130010",
            ),
        ] {
            assert_eq!(
                parse(text).map(|it| it.to_string()).as_deref(),
                Some(wanted)
            );
        }
        for text in ["", "next", "4.9-rc.1", "4..1", "a1b2c3"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(!is_strict("v4.1.0") && is_strict("4.1.0-rc.0"));
    }

    #[test]
    fn higher_versions_come_first_and_other_names_last() {
        let sorted = |names: &[&'static str]| {
            let mut names = names.to_vec();
            names.sort_by(|left, right| newest_first(left, right));
            names
        };
        assert_eq!(
            sorted(&["4.0.0", "4.0.1", "4.0.0-2", "4.0.0-1-a"]),
            ["4.0.1", "4.0.0", "4.0.0-1-a", "4.0.0-2"]
        );
        assert_eq!(
            sorted(&["4.0.0-0.2", "4.0.0-0.9", "4.0.0-0.2.a"]),
            ["4.0.0-0.9", "4.0.0-0.2.a", "4.0.0-0.2"]
        );
        assert_eq!(sorted(&["next", "4.0.0", "old"]), ["4.0.0", "old", "next"]);
    }

    #[test]
    fn the_last_number_is_incremented() {
        for (version, wanted) in [
            ("4.9.3", Some("4.9.4")),
            ("4.9.0-rc.1", Some("4.9.0-rc.2")),
            ("4.9.0-0.2.a", Some("4.9.0-0.3.a")),
            ("4.9.0-alpha", None),
        ] {
            let next = increment(&Version::parse(version).unwrap());
            assert_eq!(
                next.map(|it| it.to_string()).as_deref(),
                wanted,
                "{version}"
            );
        }
    }
}
