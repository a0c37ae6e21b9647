//! Pages of lists: every page is part of one past state, and together they are all of it.

use std::{collections::BTreeMap, fmt, ops::Bound};

use crate::{CommitLog, Filter, ObjectState};

/// A page as a client received it.
#[derive(Debug, Clone)]
pub struct Page {
    /// The request.
    pub name: String,
    /// The resource, as `group/plural`.
    pub resource: String,
    pub filter: Filter,
    /// The revision in the page's metadata.
    pub revision: u64,
    /// The last key of the page before.
    pub after: Option<String>,
    /// Keys in order, with the revisions of their objects.
    pub items: Vec<(String, u64)>,
    /// Whether another page follows.
    pub more: bool,
}

/// A page that is not part of the state at its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotViolation {
    /// The request.
    pub page: String,
    /// The revision in the page's metadata.
    pub revision: u64,
    /// The first difference, as it is in the state.
    pub wanted: Option<(String, u64)>,
    /// The first difference, as it is on the page.
    pub got: Option<(String, u64)>,
}

/// Compares pages with the commit log, in one pass for all of them.
pub fn check(pages: &[Page], commit_log: &CommitLog) -> Vec<SnapshotViolation> {
    let mut pages: Vec<&Page> = pages
        .iter()
        .filter(|page| page.revision >= commit_log.beginning())
        .collect();
    pages.sort_by_key(|page| (&page.resource, page.revision));
    let mut found = Vec::new();
    for group in pages.chunk_by(|one, other| one.resource == other.resource) {
        let mut commits = commit_log
            .between(&group[0].resource, commit_log.beginning(), u64::MAX)
            .peekable();
        let mut objects: BTreeMap<&str, &ObjectState> = BTreeMap::new();
        for page in group {
            while let Some(commit) = commits.next_if(|commit| commit.revision <= page.revision) {
                match commit.present() {
                    Some(state) => objects.insert(&commit.path, state),
                    None => objects.remove(commit.path.as_str()),
                };
            }
            found.extend(compare(page, &objects, commit_log.beginning()));
        }
    }
    found
}

fn compare(
    page: &Page,
    objects: &BTreeMap<&str, &ObjectState>,
    beginning: u64,
) -> Option<SnapshotViolation> {
    let after = page.after.as_deref();
    let until = page.items.last().filter(|_| page.more);
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let wanted = objects
        .range::<str, _>((from, Bound::Unbounded))
        .take_while(|(path, _)| until.is_none_or(|(last, _)| **path <= last.as_str()))
        .filter(|(path, state)| page.filter.selects(path, state))
        .map(|(path, state)| (*path, state.revision));
    let got = page
        .items
        .iter()
        .map(|(path, revision)| (path.as_str(), *revision))
        .filter(|(_, revision)| *revision > beginning);
    let (mut wanted, mut got) = (wanted, got);
    loop {
        let (one, other) = (wanted.next(), got.next());
        if one != other {
            let own = |(path, revision): (&str, u64)| (path.to_owned(), revision);
            return Some(SnapshotViolation {
                page: page.name.clone(),
                revision: page.revision,
                wanted: one.map(own),
                got: other.map(own),
            });
        }
        one?;
    }
}

impl fmt::Display for SnapshotViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |object: &Option<(String, u64)>| match object {
            Some((path, revision)) => format!("{path} at {revision}"),
            None => "nothing".into(),
        };
        write!(
            f,
            "not a snapshot: at revision {} there was {}, the page has {}; from {}",
            self.revision,
            show(&self.wanted),
            show(&self.got),
            self.page
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Commit;

    fn commit_log() -> CommitLog {
        let mut commit_log = CommitLog::after(0);
        for (revision, path) in [(1, "d/a"), (2, "d/b"), (3, "d/a"), (4, "d/c")] {
            let json = json!({"metadata": {}}).to_string();
            commit_log.push(Commit {
                revision,
                resource: "/configmaps".into(),
                path: path.into(),
                state: ObjectState::new(revision, json.into()),
                gone: false,
                previous: None,
            });
        }
        commit_log
    }

    fn page(revision: u64, after: Option<&str>, items: &[(&str, u64)], more: bool) -> Page {
        Page {
            name: "list".into(),
            resource: "/configmaps".into(),
            filter: Filter::default(),
            revision,
            after: after.map(Into::into),
            items: items.iter().map(|(p, r)| ((*p).into(), *r)).collect(),
            more,
        }
    }

    #[test]
    fn parts_of_a_state_hold_and_mixtures_do_not() {
        let commit_log = commit_log();
        for (page, holds) in [
            (page(2, None, &[("d/a", 1), ("d/b", 2)], false), true),
            (page(3, None, &[("d/a", 3)], true), true),
            (page(3, Some("d/a"), &[("d/b", 2)], false), true),
            (page(4, Some("d/a"), &[("d/b", 2)], false), false),
            (page(3, None, &[("d/a", 1), ("d/b", 2)], false), false),
            (page(4, None, &[("d/b", 2)], true), false),
            (
                page(2, None, &[("d/a", 1), ("d/b", 2), ("d/c", 4)], false),
                false,
            ),
        ] {
            let found = check(std::slice::from_ref(&page), &commit_log);
            assert_eq!(found.is_empty(), holds, "{page:?}: {found:?}");
        }
    }
}
