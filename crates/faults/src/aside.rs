//! What a campaign does beside its plans: walks through declarations, and start states. Each gets
//! a twentieth of the time, unless nothing else was asked for.

use std::{collections::VecDeque, fmt::Write, time::Duration};

use anyhow::{Result, bail};
use neap_trial::{Workload, judge::Violation, walk::Walked};
use parking_lot::Mutex;
use serde::Serialize;

use crate::{
    message::{Answer, Order},
    report::Report,
    start_states::StartStates,
    stopwatch::Stopwatch,
    walk,
};

/// One part in so many of the time is for each.
const PART: u32 = 20;
/// So many start states are played at a time.
const BATCH: u64 = 20;
/// So many violations are kept of each.
const KEPT: usize = 5;

/// What a campaign is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Plans,
    Walk,
    Starts,
}

/// What is to be done beside plans.
pub(crate) struct Aside {
    focus: Focus,
    left: Mutex<Left>,
}

#[derive(Default)]
struct Left {
    /// The chains that were not walked yet, and how many properties each subject has.
    chains: VecDeque<(String, usize)>,
    properties: Vec<(String, usize)>,
    /// The workloads that have start states, and the next number of each.
    starts: VecDeque<(String, u64)>,
    /// The only one that is wanted.
    only: Option<u64>,
    walked: Duration,
    started: Duration,
}

impl Aside {
    pub(crate) fn new(
        workloads: &[Workload],
        only: &str,
        focus: Focus,
        number: Option<u64>,
    ) -> Result<Self> {
        let mut left = Left {
            only: number,
            ..Left::default()
        };
        let subjects = walk::subjects(workloads)?.into_iter();
        let subjects = subjects.filter(|subject| subject.workload.name.contains(only));
        let mut chains = Vec::new();
        for subject in subjects {
            let name = subject.workload.name;
            left.properties
                .push((name.to_owned(), subject.properties()));
            let numbers = 0..subject.chains();
            let wanted = numbers.filter(|chain| number.is_none_or(|only| only == *chain as u64));
            // What is custom is walked through as a whole; of the others, each gets its turn.
            let custom = name == "operation";
            chains.extend(wanted.map(|chain| (if custom { 0 } else { chain + 1 }, name, chain)));
        }
        chains.sort_by_key(|(turn, ..)| *turn);
        let chains = chains.into_iter();
        left.chains = chains
            .map(|(_, name, chain)| (name.to_owned(), chain))
            .collect();
        let first = number.unwrap_or_default();
        let starts = StartStates::of(workloads).names().into_iter();
        left.starts = starts.map(|name| (name.to_owned(), first)).collect();
        let left = Mutex::new(left);
        Ok(Self { focus, left })
    }

    /// Whether plans are not wanted at all.
    pub(crate) fn is_all(&self) -> bool {
        self.focus != Focus::Plans
    }

    /// The workloads of which plans are wanted.
    pub(crate) fn played<'a>(&self, workloads: &'a [Workload]) -> &'a [Workload] {
        if self.is_all() { &[] } else { workloads }
    }

    /// What is to be done next, if it is its turn.
    pub(crate) fn due(&self, watch: Stopwatch, seed: u64) -> Option<Order> {
        let mut left = self.left.lock();
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get() as u32);
        let share = watch.elapsed() * cores / PART;
        let (walk, start) = match self.focus {
            Focus::Walk => (true, false),
            Focus::Starts => (false, true),
            Focus::Plans => (left.walked < share, left.started < share),
        };
        if walk && let Some((subject, chain)) = left.chains.pop_front() {
            return Some(Order::Walk {
                subject,
                chain,
                seed,
            });
        }
        if !start {
            return None;
        }
        let count = if left.only.is_some() { 1 } else { BATCH };
        let (workload, from) = left.starts.pop_front()?;
        if left.only.is_none() {
            left.starts.push_back((workload.clone(), from + count));
        }
        Some(Order::Start {
            workload,
            from,
            count,
            seed,
        })
    }

    /// Notes how long it took.
    pub(crate) fn spent(&self, order: &Order, time: Duration) {
        let mut left = self.left.lock();
        match order {
            Order::Walk { .. } => left.walked += time,
            _ => left.started += time,
        }
    }

    /// Notes what came of it.
    pub(crate) fn note(&self, order: &Order, answer: Answer, report: &mut Report) -> Result<()> {
        match (order, answer) {
            (Order::Walk { subject, chain, .. }, Answer::Walked(walked)) => {
                let walks = report.walked.entry(subject.clone()).or_default();
                let left = self.left.lock();
                let all = left.properties.iter().find(|(name, _)| name == subject);
                walks.properties = all.map_or(0, |(_, count)| *count);
                walks.add(*chain, &walked);
            }
            (
                Order::Start {
                    workload, count, ..
                },
                Answer::Started(bad),
            ) => {
                let began = report.starts.entry(workload.clone()).or_default();
                began.played += count;
                began.add(bad);
            }
            (order, answer) => bail!("{order:?}: {answer:?}"),
        }
        Ok(())
    }
}

/// What came of walks through one kind of declaration.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Walks {
    /// How many properties there are.
    pub(crate) properties: usize,
    /// Those that were given at least three values.
    pub(crate) driven: usize,
    /// Those of which the server took at least one.
    pub(crate) taken: usize,
    pub(crate) changes: usize,
    pub(crate) refused: usize,
    pub(crate) kept: usize,
    pub(crate) remade: usize,
    /// How many went wrong, and the first of them.
    pub(crate) wrong: usize,
    pub(crate) violations: Vec<String>,
}

impl Walks {
    fn add(&mut self, chain: usize, walked: &Walked) {
        let driven = walked.properties.iter().filter(|(_, values)| *values >= 3);
        self.driven += driven.count();
        self.taken += walked.taken;
        self.changes += walked.changes;
        self.refused += walked.refused;
        self.kept += walked.kept;
        self.remade += walked.remade;
        self.wrong += walked.violations.len();
        let room = KEPT.saturating_sub(self.violations.len());
        let first = walked.violations.iter().take(room);
        self.violations
            .extend(first.map(|violation| format!("chain {chain}: {violation}")));
    }

    pub(crate) fn of(&self, name: &str) -> String {
        let mut text = told(&self.violations, self.wrong);
        let mark = if self.wrong == 0 { '✓' } else { '✗' };
        let share = 100 * self.driven / self.properties.max(1);
        let _ = writeln!(
            text,
            " {mark} walk {name}: {} of {} properties ({share} %) given three values or more, {} took one; {} changes, {} refused, {} kept, {} without a way back; {} wrong",
            self.driven,
            self.properties,
            self.taken,
            self.changes,
            self.refused,
            self.kept,
            self.remade,
            self.wrong
        );
        text
    }
}

/// What came of start states.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Began {
    pub(crate) played: u64,
    /// How many went wrong, and the first of them.
    pub(crate) wrong: usize,
    pub(crate) violations: Vec<String>,
}

impl Began {
    fn add(&mut self, bad: Vec<(u64, Vec<Violation>)>) {
        for (number, violations) in bad {
            self.wrong += 1;
            if self.violations.len() < KEPT {
                let words: Vec<_> = violations.iter().map(ToString::to_string).collect();
                self.violations
                    .push(format!("number {number}: {}", words.join("\n    ")));
            }
        }
    }

    pub(crate) fn of(&self, name: &str) -> String {
        let mut text = told(&self.violations, self.wrong);
        let mark = if self.wrong == 0 { '✓' } else { '✗' };
        let (played, wrong) = (self.played, self.wrong);
        let _ = writeln!(
            text,
            " {mark} starts {name}: {played} start states, {wrong} wrong"
        );
        text
    }
}

fn told(violations: &[String], all: usize) -> String {
    let mut text = String::new();
    for violation in violations {
        let _ = writeln!(text, "✗ {violation}");
    }
    if all > violations.len() {
        let _ = writeln!(text, "  and {} more", all - violations.len());
    }
    text
}
