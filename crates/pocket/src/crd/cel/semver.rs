//! Semantic versions in rules: `semver("1.2.3")`.

use std::cmp::Ordering;

/// A version; build metadata (after `+`) does not affect ordering and is dropped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Semver {
    pub(super) major: i64,
    pub(super) minor: i64,
    pub(super) patch: i64,
    before: Vec<PrereleasePart>,
}

/// Numbers order before words, as the specification says.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PrereleasePart {
    Number(i64),
    Word(Box<str>),
}

impl Semver {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.split_once('+').map_or(Some(text), |(text, build)| {
            build.split('.').all(is_identifier).then_some(text)
        })?;
        let (numbers, before) = match text.split_once('-') {
            Some((numbers, before)) => (numbers, before.split('.').map(part).collect()),
            None => (text, Some(Vec::new())),
        };
        let mut numbers = numbers.split('.').map(number);
        let version = Self {
            major: numbers.next()??,
            minor: numbers.next()??,
            patch: numbers.next()??,
            before: before?,
        };
        numbers.next().is_none().then_some(version)
    }

    /// As [`Self::parse`], forgiving a leading `v`, missing parts and leading zeros.
    pub(super) fn parse_loosely(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut parts: Vec<&str> = numbers
            .split('.')
            .map(|part| match part.trim_start_matches('0') {
                "" if !part.is_empty() => "0",
                trimmed => trimmed,
            })
            .collect();
        while parts.len() < 3 {
            parts.push("0");
        }
        Self::parse(&format!("{}{rest}", parts.join(".")))
    }
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let no_zero = text == "0" || !text.starts_with('0');
    (plain && no_zero).then(|| text.parse().ok()).flatten()
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn part(text: &str) -> Option<PrereleasePart> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return number(text).map(PrereleasePart::Number);
    }
    is_identifier(text).then(|| PrereleasePart::Word(text.into()))
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        // A pre-release is less than its release.
        let released = |v: &Self| v.before.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| released(self).cmp(&released(other)))
            .then_with(|| self.before.cmp(&other.before))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_specified() {
        let ordered = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
        ];
        let parsed: Vec<Semver> = ordered.iter().map(|v| Semver::parse(v).unwrap()).collect();
        assert!(parsed.is_sorted());
        assert_eq!(Semver::parse("1.0.0+a"), Semver::parse("1.0.0+b"));
    }

    #[test]
    fn nonsense_is_refused_and_looseness_is_asked_for() {
        for text in [
            "", "1", "1.2", "1.2.3.4", "01.2.3", "v1.2.3", "1.2.3-", "1.2.3-01", "1.2.x", "1.2.3+",
        ] {
            assert_eq!(Semver::parse(text), None, "{text}");
        }
        for (loose, strict) in [
            ("v1.2", "1.2.0"),
            ("01.02.3-rc.1", "1.2.3-rc.1"),
            ("1", "1.0.0"),
            ("v0", "0.0.0"),
        ] {
            assert_eq!(
                Semver::parse_loosely(loose),
                Semver::parse(strict),
                "{loose}"
            );
        }
        assert_eq!(Semver::parse_loosely(""), None);
    }
}
