//! What the message of a commit says: which bugs and issues it is about, and its subject.

use std::sync::LazyLock;

use regex::Regex;

/// Leading groups such as `[release-4.21]`.
static GROUPS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:\[[\w.\-]+\]\s*)+").ok());
/// `Bug 123, 456: `.
static BUGS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[Bb]ugs?\s([\d, ]+?)\s*[-:]\s*").ok());
/// `OCPBUGS-12, API-3: `.
static ISSUES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([A-Z]+-\d+(?:[, ]+[A-Z]+-\d+)*)\s*[-:]\s*").ok());
/// `Merge pull request #12 from …`.
static MERGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^Merge pull request #(\d+) from").ok());
/// `subject (#12)`.
static SQUASHED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\(#(\d+)\)").ok());

/// A message, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Bugzilla's bugs, in order.
    pub bugs: Vec<String>,
    /// Jira's issues, in order.
    pub issues: Vec<String>,
    /// The rest of the first line.
    pub subject: String,
}

/// The pull request that a merge commit brings, and what it says.
pub fn merged(message: &str) -> Option<(u64, Message)> {
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    Some((number(MERGE.as_ref()?, subject)?, Message::parse(body)))
}

/// The same of a commit that was squashed when it was merged.
pub fn squashed(message: &str) -> Option<(u64, Message)> {
    let subject = message.lines().next()?;
    Some((
        number(SQUASHED.as_ref()?, subject)?,
        Message::parse(subject),
    ))
}

fn number(pattern: &Regex, text: &str) -> Option<u64> {
    pattern.captures(text)?.get(1)?.as_str().parse().ok()
}

impl Message {
    /// Reads the message of a commit.
    pub fn parse(text: &str) -> Self {
        let mut rest = text.trim();
        if let Some(found) = GROUPS.as_ref().and_then(|it| it.find(rest)) {
            rest = &rest[found.end()..];
        }
        let references = |pattern: &Option<Regex>| {
            let found = pattern.as_ref()?.captures(rest)?;
            let mut all: Vec<_> = found[1]
                .split([',', ' '])
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            all.sort();
            all.dedup();
            Some((all, found.get(0)?.end()))
        };
        let (mut bugs, mut issues, mut end) = (Vec::new(), Vec::new(), 0);
        if let Some((found, at)) = references(&BUGS) {
            (bugs, end) = (found, at);
        } else if let Some((found, at)) = references(&ISSUES) {
            (issues, end) = (found, at);
        }
        let subject = rest[end..].lines().next().unwrap_or_default().trim();
        let subject = if subject.is_empty() { "Merge" } else { subject };
        Self {
            bugs,
            issues,
            subject: subject.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_before_the_subject() {
        for (text, bugs, issues, subject) in [
            ("OCPBUGS-12: fix it", &[][..], &["OCPBUGS-12"][..], "fix it"),
            (
                "[release-4.21] [wip]OCPBUGS-2, API-10 - fix",
                &[],
                &["API-10", "OCPBUGS-2"],
                "fix",
            ),
            ("Bug 20, 3: fix\n\nlonger", &["20", "3"], &[], "fix"),
            ("bugs 7 8 - fix", &["7", "8"], &[], "fix"),
            ("NO-ISSUE: fix", &[], &[], "NO-ISSUE: fix"),
            ("fix OCPBUGS-12: it", &[], &[], "fix OCPBUGS-12: it"),
            ("Bug: fix", &[], &[], "Bug: fix"),
            (
                "OCPBUGS-1 without the mark",
                &[],
                &[],
                "OCPBUGS-1 without the mark",
            ),
            ("OCPBUGS-1:", &[], &["OCPBUGS-1"], "Merge"),
            ("", &[], &[], "Merge"),
        ] {
            let found = Message::parse(text);
            assert_eq!(
                (&found.bugs[..], &found.issues[..]),
                (&owned(bugs)[..], &owned(issues)[..]),
                "{text}"
            );
            assert_eq!(found.subject, subject);
        }
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn pull_requests_are_known_by_the_form_of_their_commit() {
        let (number, message) =
            merged("Merge pull request #12 from me/branch\n\nAPI-1: fix").unwrap();
        assert_eq!((number, &*message.subject), (12, "fix"));
        assert_eq!(merged("Merge branch 'main'"), None);
        let (number, message) = squashed("API-1: fix (#13) (#14)\n\nbody (#15)").unwrap();
        assert_eq!((number, &*message.subject), (13, "fix (#13) (#14)"));
        assert_eq!(squashed("fix\n\n(#3)"), None);
    }
}
