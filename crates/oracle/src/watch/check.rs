//! Holding one stream against the chronicle.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Change, Guarantee, Line, Oracle, Seen, Start, Violation};
use crate::{Chronicle, Commit, Filter};

/// One judgement under way.
pub(super) struct Check<'a> {
    oracle: &'a Oracle,
    chronicle: &'a Chronicle,
    found: Vec<Violation>,
}

/// Where a stream's changes begin.
struct Beginning {
    /// How many lines belong to the initial state and its mark.
    lines: usize,
    /// The revision of that state.
    revision: u64,
}

impl<'a> Check<'a> {
    pub(super) fn new(oracle: &'a Oracle, chronicle: &'a Chronicle) -> Self {
        Self {
            oracle,
            chronicle,
            found: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Vec<Violation> {
        for line in &self.oracle.lines {
            if let Line::Garbage(_) = line {
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
        first: Option<Seen>,
        then: Option<Seen>,
    ) {
        self.found.push(Violation {
            guarantee,
            stream: self.oracle.name.clone(),
            what,
            first,
            then,
        });
    }

    /// Finds, and judges, the initial state. `None` if there is nothing behind it to judge.
    fn beginning(&mut self) -> Option<Beginning> {
        match self.oracle.start {
            Start::After(revision) => Some(Beginning { lines: 0, revision }),
            Start::Now => self.untold(),
            Start::MarkedState => self.marked(),
            Start::State => self.unmarked(),
        }
    }

    /// Before the first thing seen nothing can be said to be missing.
    fn untold(&self) -> Option<Beginning> {
        let first = self.oracle.lines.first()?.place()?;
        Some(Beginning {
            lines: 0,
            revision: first - 1,
        })
    }

    fn marked(&mut self) -> Option<Beginning> {
        let lines = self.oracle.lines.iter();
        let (at, revision) = lines.enumerate().find_map(|(at, line)| match line {
            Line::Bookmark {
                revision,
                initial: true,
            } => Some((at, *revision)),
            _ => None,
        })?;
        let initial: Vec<&Seen> = events(&self.oracle.lines[..at]).collect();
        for problem in initial_problems(&initial, self.oracle, self.chronicle, revision) {
            let (what, seen) = problem;
            self.report(
                Guarantee::Reliable,
                what,
                Some(seen),
                Some(Seen::bookmark(revision)),
            );
        }
        Some(Beginning {
            lines: at + 1,
            revision,
        })
    }

    /// The state's revision is not told, so one is looked for that explains the stream.
    fn unmarked(&mut self) -> Option<Beginning> {
        let lines = &self.oracle.lines;
        let mut names = HashSet::new();
        let longest = lines
            .iter()
            .take_while(|line| {
                matches!(line, Line::Event(seen)
                    if seen.change == Some(Change::Added) && names.insert(&seen.path))
            })
            .count();
        for initial in (0..=longest).rev() {
            let newest = events(&lines[..initial]).map(|seen| seen.revision).max();
            let newest = newest.unwrap_or(0);
            for revision in self.candidates(lines.get(initial), newest) {
                let state: Vec<&Seen> = events(&lines[..initial]).collect();
                if revision >= newest
                    && initial_problems(&state, self.oracle, self.chronicle, revision).is_empty()
                {
                    return Some(Beginning {
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

    /// Revisions at which a state may have been read that the line `next` came after.
    fn candidates(&self, next: Option<&Line>, newest: u64) -> Vec<u64> {
        match next {
            // Nothing selected happened between the state and the next event.
            Some(Line::Event(seen)) => vec![seen.revision.saturating_sub(1)],
            Some(Line::Bookmark { revision, .. }) => vec![*revision],
            _ if self.oracle.through > 0 => vec![self.oracle.through],
            _ => {
                let later = self
                    .chronicle
                    .between(&self.oracle.resource, newest, u64::MAX);
                std::iter::once(newest)
                    .chain(later.map(|commit| commit.revision))
                    .collect()
            }
        }
    }

    /// Judges the order of what came, and gives it by revision.
    fn walk(&mut self, beginning: &Beginning) -> BTreeMap<u64, Seen> {
        let mut delivered: BTreeMap<u64, Seen> = BTreeMap::new();
        let mut last: Option<Seen> = None;
        let mut mark = Seen::bookmark(beginning.revision);
        let start = mark.revision;
        let lines = &self.oracle.lines[beginning.lines..];
        for (at, line) in lines.iter().enumerate() {
            match line {
                Line::Event(seen) => {
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
                Line::Bookmark { revision, .. } => {
                    let now = Seen::bookmark(*revision);
                    let before = last.as_ref().unwrap_or(&mark);
                    if before.revision > *revision || mark.revision > *revision {
                        let what = "a bookmark that goes back";
                        let before = before.clone();
                        self.report(Guarantee::Bookmarkable, what, Some(before), Some(now));
                    } else {
                        mark = now;
                    }
                }
                Line::Error(_) if at + 1 < lines.len() => {
                    self.report(Guarantee::Ordered, "more after an error", None, None);
                }
                Line::Error(_) | Line::Garbage(_) => {}
            }
        }
        delivered
    }

    /// Judges that exactly the selected commits were delivered, as they were.
    fn compare(&mut self, beginning: &Beginning, delivered: &BTreeMap<u64, Seen>) {
        let places = self.oracle.lines[beginning.lines..].iter();
        let through = places.filter_map(Line::place).max().unwrap_or(0);
        let through = through.max(self.oracle.through);
        let known = self.chronicle.beginning();
        let mut expected = HashSet::new();
        let commits = self.chronicle.between(
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

    fn missing(&mut self, start: &Beginning, wanted: Seen, delivered: &BTreeMap<u64, Seen>) {
        let before = delivered.range(..wanted.revision).next_back();
        let resumed = matches!(self.oracle.start, Start::After(_)) && before.is_none();
        let after = delivered.range(wanted.revision..).next();
        let after = after.map(|(_, seen)| seen.clone());
        if resumed {
            let what = "does not go on where it was resumed";
            let from = Seen::bookmark(start.revision);
            let then = after.unwrap_or(wanted);
            self.report(Guarantee::Resumable, what, Some(from), Some(then));
        } else {
            self.report(Guarantee::Reliable, "never delivered", Some(wanted), after);
        }
    }

    /// A place may be called expired only if history was forgotten behind it.
    fn end(&mut self, beginning: &Beginning) {
        let place = self.oracle.place().unwrap_or(0).max(beginning.revision);
        let expired = matches!(self.oracle.lines.last(), Some(Line::Error(410)));
        if expired && place >= self.chronicle.oldest() {
            let what = "expired, though nothing after it was forgotten";
            let place = Seen::bookmark(place);
            self.report(Guarantee::Resumable, what, Some(place), None);
        }
    }
}

fn events(lines: &[Line]) -> impl Iterator<Item = &Seen> {
    lines.iter().filter_map(|line| match line {
        Line::Event(seen) => Some(seen),
        _ => None,
    })
}

/// How a commit is seen through a filter.
fn shown(commit: &Commit, filter: &Filter) -> Option<Seen> {
    let selected = |state: &&crate::State| filter.selects(&commit.path, state);
    let was = commit.previous.as_ref().filter(selected);
    let is = commit.present().filter(selected);
    let (change, state) = match (was, is) {
        (None, None) => return None,
        (None, Some(state)) => (Change::Added, state),
        (Some(_), Some(state)) => (Change::Modified, state),
        (Some(_), None) if commit.gone => (Change::Deleted, &commit.state),
        (Some(previous), None) => (Change::Deleted, previous),
    };
    Some(Seen::of(change, &commit.path, state, commit.revision))
}

/// What is wrong with an initial state that was read at `revision`.
fn initial_problems(
    initial: &[&Seen],
    oracle: &Oracle,
    chronicle: &Chronicle,
    revision: u64,
) -> Vec<(&'static str, Seen)> {
    let mut problems = Vec::new();
    if revision < chronicle.beginning() {
        return problems;
    }
    let state = chronicle.state_at(&oracle.resource, &oracle.filter, revision);
    let mut wanted: HashMap<&str, Seen> = state
        .into_iter()
        .map(|(path, state)| {
            let seen = Seen::of(Change::Added, path, state, state.revision);
            (path, seen)
        })
        .collect();
    for seen in initial {
        if seen.revision <= chronicle.beginning() {
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
