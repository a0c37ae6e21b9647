//! Compares a stream with the commit log.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Change, Guarantee, Start, WatchEvent, WatchLine, WatchOracle, WatchViolation};
use crate::{Commit, CommitLog, Filter};

/// A check in progress.
pub(super) struct Check<'a> {
    oracle: &'a WatchOracle,
    commit_log: &'a CommitLog,
    found: Vec<WatchViolation>,
}

/// Where the changes of a stream start.
struct StreamStart {
    /// The number of lines that belong to the initial state and its bookmark.
    lines: usize,
    /// The revision of that state.
    revision: u64,
}

impl<'a> Check<'a> {
    pub(super) fn new(oracle: &'a WatchOracle, commit_log: &'a CommitLog) -> Self {
        Self {
            oracle,
            commit_log,
            found: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Vec<WatchViolation> {
        for line in &self.oracle.lines {
            if let WatchLine::Garbage(_) = line {
                self.report(Guarantee::Faithful, "a line that is no event", None, None);
            }
        }
        if let Some(beginning) = self.beginning() {
            let delivered = self.walk(&beginning);
            self.compare(&beginning, &delivered);
            self.end(&beginning);
        }
        self.found
    }

    fn report(
        &mut self,
        guarantee: Guarantee,
        what: &'static str,
        first: Option<WatchEvent>,
        then: Option<WatchEvent>,
    ) {
        self.found.push(WatchViolation {
            guarantee,
            stream: self.oracle.name.clone(),
            what,
            first,
            then,
        });
    }

    /// Determines and judges the initial state. None if there is nothing after it to judge.
    fn beginning(&mut self) -> Option<StreamStart> {
        match self.oracle.start {
            Start::After(revision) => Some(StreamStart { lines: 0, revision }),
            Start::Now => self.unknown_start(),
            Start::MarkedState => self.marked(),
            Start::State => self.unmarked(),
        }
    }

    /// Nothing before the first event can be reported as missing.
    fn unknown_start(&self) -> Option<StreamStart> {
        let first = self.oracle.lines.first()?.resume_revision()?;
        Some(StreamStart {
            lines: 0,
            revision: first - 1,
        })
    }

    fn marked(&mut self) -> Option<StreamStart> {
        let lines = self.oracle.lines.iter();
        let (at, revision) = lines.enumerate().find_map(|(at, line)| match line {
            WatchLine::Bookmark {
                revision,
                initial: true,
            } => Some((at, *revision)),
            _ => None,
        })?;
        let initial: Vec<&WatchEvent> = events(&self.oracle.lines[..at]).collect();
        for problem in initial_problems(&initial, self.oracle, self.commit_log, revision) {
            let (what, seen) = problem;
            self.report(
                Guarantee::Reliable,
                what,
                Some(seen),
                Some(WatchEvent::bookmark(revision)),
            );
        }
        Some(StreamStart {
            lines: at + 1,
            revision,
        })
    }

    /// The revision of the state is not reported, so one is searched for that explains the stream.
    fn unmarked(&mut self) -> Option<StreamStart> {
        let lines = &self.oracle.lines;
        let mut names = HashSet::new();
        let longest = lines
            .iter()
            .take_while(|line| {
                matches!(line, WatchLine::Event(seen)
                    if seen.change == Some(Change::Added) && names.insert(&seen.path))
            })
            .count();
        for initial in (0..=longest).rev() {
            let newest = events(&lines[..initial]).map(|seen| seen.revision).max();
            let newest = newest.unwrap_or(0);
            for revision in self.candidates(lines.get(initial), newest) {
                let state: Vec<&WatchEvent> = events(&lines[..initial]).collect();
                if revision >= newest
                    && initial_problems(&state, self.oracle, self.commit_log, revision).is_empty()
                {
                    return Some(StreamStart {
                        lines: initial,
                        revision,
                    });
                }
            }
        }
        if !lines.is_empty() || self.oracle.through > 0 {
            let first = events(lines).next().cloned();
            self.report(
                Guarantee::Reliable,
                "no state of the past has exactly the objects it began with",
                first,
                None,
            );
        }
        None
    }

    /// Revisions at which the state before the line `next` may have been read.
    fn candidates(&self, next: Option<&WatchLine>, newest: u64) -> Vec<u64> {
        match next {
            // Nothing selected happened between the state and the next event.
            Some(WatchLine::Event(seen)) => vec![seen.revision.saturating_sub(1)],
            Some(WatchLine::Bookmark { revision, .. }) => vec![*revision],
            _ if self.oracle.through > 0 => vec![self.oracle.through],
            _ => {
                let later = self
                    .commit_log
                    .between(&self.oracle.resource, newest, u64::MAX);
                std::iter::once(newest)
                    .chain(later.map(|commit| commit.revision))
                    .collect()
            }
        }
    }

    /// Judges the order of the events, and returns them by revision.
    fn walk(&mut self, beginning: &StreamStart) -> BTreeMap<u64, WatchEvent> {
        let mut delivered: BTreeMap<u64, WatchEvent> = BTreeMap::new();
        let mut last: Option<WatchEvent> = None;
        let mut mark = WatchEvent::bookmark(beginning.revision);
        let start = mark.revision;
        let lines = &self.oracle.lines[beginning.lines..];
        for (at, line) in lines.iter().enumerate() {
            match line {
                WatchLine::Event(seen) => {
                    let problem = if let Some(twin) = delivered.get(&seen.revision) {
                        Some((Guarantee::Unique, "delivered twice", twin))
                    } else if seen.revision <= start {
                        Some((Guarantee::Resumable, "from before the start", &mark))
                    } else if seen.revision <= mark.revision {
                        Some((Guarantee::Bookmarkable, "not newer than a bookmark", &mark))
                    } else {
                        let newer = last.as_ref().filter(|last| last.revision > seen.revision);
                        newer.map(|last| (Guarantee::Ordered, "older than the one before", last))
                    };
                    let problem = problem.map(|(g, what, first)| (g, what, first.clone()));
                    if let Some((guarantee, what, first)) = problem {
                        self.report(guarantee, what, Some(first), Some(seen.clone()));
                    }
                    delivered.entry(seen.revision).or_insert(seen.clone());
                    last = Some(seen.clone());
                }
                WatchLine::Bookmark { revision, .. } => {
                    let now = WatchEvent::bookmark(*revision);
                    let before = last.as_ref().unwrap_or(&mark);
                    if before.revision > *revision || mark.revision > *revision {
                        let what = "a bookmark that goes back";
                        let before = before.clone();
                        self.report(Guarantee::Bookmarkable, what, Some(before), Some(now));
                    } else {
                        mark = now;
                    }
                }
                WatchLine::Error(_) if at + 1 < lines.len() => {
                    self.report(Guarantee::Ordered, "more after an error", None, None);
                }
                WatchLine::Error(_) | WatchLine::Garbage(_) => {}
            }
        }
        delivered
    }

    /// Checks that exactly the selected commits were delivered, unchanged.
    fn compare(&mut self, beginning: &StreamStart, delivered: &BTreeMap<u64, WatchEvent>) {
        let places = self.oracle.lines[beginning.lines..].iter();
        let through = places
            .filter_map(WatchLine::resume_revision)
            .max()
            .unwrap_or(0);
        let through = through.max(self.oracle.through);
        let known = self.commit_log.beginning();
        let mut expected = HashSet::new();
        let commits = self.commit_log.between(
            &self.oracle.resource,
            beginning.revision.max(known),
            through,
        );
        for wanted in commits.filter_map(|commit| shown(commit, &self.oracle.filter)) {
            expected.insert(wanted.revision);
            match delivered.get(&wanted.revision) {
                None => self.missing(beginning, wanted, delivered),
                Some(seen) if seen.change != wanted.change || seen.path != wanted.path => {
                    let what = "an event that does not say what happened";
                    self.report(Guarantee::Faithful, what, Some(wanted), Some(seen.clone()));
                }
                Some(seen) if !seen.agrees(&wanted) => {
                    let what = "the object is not what its revision wrote";
                    self.report(Guarantee::Atomic, what, Some(wanted), Some(seen.clone()));
                }
                Some(_) => {}
            }
        }
        let after = beginning.revision.max(known);
        for (revision, seen) in delivered.range(after + 1..) {
            if !expected.contains(revision) {
                let what = "an event of nothing that the stream selects";
                self.report(Guarantee::Faithful, what, None, Some(seen.clone()));
            }
        }
    }

    fn missing(
        &mut self,
        start: &StreamStart,
        wanted: WatchEvent,
        delivered: &BTreeMap<u64, WatchEvent>,
    ) {
        let before = delivered.range(..wanted.revision).next_back();
        let resumed = matches!(self.oracle.start, Start::After(_)) && before.is_none();
        let after = delivered.range(wanted.revision..).next();
        let after = after.map(|(_, seen)| seen.clone());
        if resumed {
            let what = "does not go on where it was resumed";
            let from = WatchEvent::bookmark(start.revision);
            let then = after.unwrap_or(wanted);
            self.report(Guarantee::Resumable, what, Some(from), Some(then));
        } else {
            self.report(Guarantee::Reliable, "never delivered", Some(wanted), after);
        }
    }

    /// A revision may be reported as expired only if it was compacted.
    fn end(&mut self, beginning: &StreamStart) {
        let resume_revision = self
            .oracle
            .resume_revision()
            .unwrap_or(0)
            .max(beginning.revision);
        let expired = matches!(self.oracle.lines.last(), Some(WatchLine::Error(410)));
        if expired && resume_revision >= self.commit_log.oldest() {
            let what = "expired, though nothing after it was forgotten";
            let resume_revision = WatchEvent::bookmark(resume_revision);
            self.report(Guarantee::Resumable, what, Some(resume_revision), None);
        }
    }
}

fn events(lines: &[WatchLine]) -> impl Iterator<Item = &WatchEvent> {
    lines.iter().filter_map(|line| match line {
        WatchLine::Event(seen) => Some(seen),
        _ => None,
    })
}

/// The event that a commit causes on a stream with this filter.
fn shown(commit: &Commit, filter: &Filter) -> Option<WatchEvent> {
    let selected = |state: &&crate::ObjectState| filter.selects(&commit.path, state);
    let was = commit.previous.as_ref().filter(selected);
    let is = commit.present().filter(selected);
    let (change, state) = match (was, is) {
        (None, None) => return None,
        (None, Some(state)) => (Change::Added, state),
        (Some(_), Some(state)) => (Change::Modified, state),
        (Some(_), None) if commit.gone => (Change::Deleted, &commit.state),
        (Some(previous), None) => (Change::Deleted, previous),
    };
    Some(WatchEvent::of(change, &commit.path, state, commit.revision))
}

/// The problems of an initial state that was read at `revision`.
fn initial_problems(
    initial: &[&WatchEvent],
    oracle: &WatchOracle,
    commit_log: &CommitLog,
    revision: u64,
) -> Vec<(&'static str, WatchEvent)> {
    let mut problems = Vec::new();
    if revision < commit_log.beginning() {
        return problems;
    }
    let state = commit_log.state_at(&oracle.resource, &oracle.filter, revision);
    let mut wanted: HashMap<&str, WatchEvent> = state
        .into_iter()
        .map(|(path, state)| {
            let seen = WatchEvent::of(Change::Added, path, state, state.revision);
            (path, seen)
        })
        .collect();
    for seen in initial {
        if seen.revision <= commit_log.beginning() {
            continue;
        }
        match wanted.remove(seen.path.as_str()) {
            Some(was)
                if was.revision == seen.revision
                    && seen.change == was.change
                    && was.agrees(seen) => {}
            _ => problems.push(("not in the state it began with", (*seen).clone())),
        }
    }
    let missing = wanted.into_values();
    problems.extend(missing.map(|seen| ("missing from the state it began with", seen)));
    problems
}
