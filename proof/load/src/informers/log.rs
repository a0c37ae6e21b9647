//! The log of kube-controller-manager: which of its lines count as complaints.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

/// Lines that do not count, by words that they contain, each with its reason. The last concerns
/// behaviour of ours; the others concern the controllers' own files, caches and races.
const IGNORED: [(&[&str], &str); 5] = [
    (
        &["The manifest file is empty, ignoring."],
        "the file that it is about was never named",
    ),
    (
        &["Flexvolume plugin directory at"],
        "about a folder of the machine",
    ),
    (
        &["is not as new as written version"],
        "a controller looks at its cache before its own write has come back, notices, and tries again",
    ),
    (
        &["the object has been modified; please apply your changes to the latest version"],
        "two of its controllers write the same object; the later one tries again",
    ),
    (
        &["garbagecollector.go", "error syncing item", "not found"],
        "the server collects garbage too, and was faster",
    ),
];

/// Further lines that do not count while objects are deleted: a controller was about to write an
/// object that is gone, or into a terminating namespace.
const DURING_DELETION: [&str; 3] = [
    "not found",
    "because it is being terminated",
    "Error getting updated StatefulSet from lister",
];

/// The lines that count: errors, warnings and worse. Warnings count because a watch that ends at
/// once or a revision that is too old is only a warning there.
pub(super) fn complaints(log: &str) -> Vec<&str> {
    let counts = |line: &&str| {
        let mut letters = line.bytes();
        matches!(letters.next(), Some(b'E' | b'W' | b'F'))
            && letters.next().is_some_and(|digit| digit.is_ascii_digit())
            || line.starts_with("panic:")
    };
    let has_all = |line: &str, words: &[&str]| words.iter().all(|words| line.contains(words));
    let ignored = |line: &str| IGNORED.iter().any(|(words, _)| has_all(line, words));
    let lines = log.lines().filter(counts);
    lines.filter(|line| !ignored(line)).collect()
}

/// The same for a time in which objects were deleted.
pub(super) fn complaints_during_deletion(log: &str) -> Vec<&str> {
    let ignored = |line: &str| DURING_DELETION.iter().any(|words| line.contains(words));
    let lines = complaints(log).into_iter();
    lines.filter(|line| !ignored(line)).collect()
}

/// Fails if the garbage collector does not watch one of `resources` (`group/plural`, or the plural
/// alone).
pub(super) fn collector_follows(log: &str, resources: &BTreeSet<String>) -> Result<()> {
    let words = "syncing garbage collector with updated resources from discovery";
    let line = log.lines().find(|line| line.contains(words));
    let line = line.context("the garbage collector did not look at discovery")?;
    let followed = followed(line);
    let missing: Vec<_> = resources.difference(&followed).collect();
    ensure!(
        missing.is_empty(),
        "the garbage collector does not follow {missing:?}"
    );
    Ok(())
}

/// Parses `… diff="added: [/v1, Resource=configmaps apps/v1, Resource=deployments], removed: []"`.
fn followed(line: &str) -> BTreeSet<String> {
    let added = line.split_once("added: [").map_or("", |(_, rest)| rest);
    let added = added.split(']').next().unwrap_or_default();
    let words: Vec<&str> = added.split_whitespace().collect();
    let resources = words.chunks_exact(2).filter_map(|pair| {
        let group = pair[0].trim_end_matches(',').rsplit_once('/')?.0;
        let plural = pair[1].strip_prefix("Resource=")?;
        Some(if group.is_empty() {
            plural.to_owned()
        } else {
            format!("{group}/{plural}")
        })
    });
    resources.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_warnings_count_unless_excused() {
        let log = "I1115 14:54:24 all is well\n\
                   E1115 14:54:24 options.go:205] The manifest file is empty, ignoring.\n\
                   W1115 14:54:25 watch ended\nE1115 14:54:26 failed to list\nEverything else\n";
        assert_eq!(
            complaints(log),
            [
                "W1115 14:54:25 watch ended",
                "E1115 14:54:26 failed to list"
            ]
        );
    }

    #[test]
    fn more_is_excused_while_objects_go() {
        let log = "E1115 14:54:26 pods \"a\" not found\nE1115 14:54:26 failed to list\n";
        assert_eq!(complaints(log).len(), 2);
        assert_eq!(
            complaints_during_deletion(log),
            ["E1115 14:54:26 failed to list"]
        );
    }

    #[test]
    fn resources_that_are_not_followed_are_named() {
        let log = "I1 \"syncing garbage collector with updated resources from discovery\" \
                   attempt=1 diff=\"added: [/v1, Resource=pods apps/v1, Resource=deployments], removed: []\"";
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        collector_follows(log, &set(&["pods", "apps/deployments"])).unwrap();
        let error = collector_follows(log, &set(&["pods", "batch/jobs"])).unwrap_err();
        assert!(error.to_string().contains("batch/jobs"), "{error}");
    }
}
