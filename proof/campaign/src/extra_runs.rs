//! The part of a campaign that plays no plans: walks through declarations, and start states. Each
//! gets a twentieth of the time, unless it is all that was requested.

use std::{collections::VecDeque, fmt::Write, time::Duration};

use anyhow::{Result, bail};
use neap_trial::{Workload, judge::Violation, walk::WalkReport};
use parking_lot::Mutex;
use serde::Serialize;

use crate::{
    protocol::{WorkerRequest, WorkerResponse},
    report::CampaignReport,
    start_states::StartStatePlayer,
    stopwatch::Stopwatch,
    walk,
};

/// The fraction of the time budget for walks, and for start states: one in `TIME_FRACTION`.
const TIME_FRACTION: u32 = 20;
/// Start states per request to a worker.
const START_BATCH: u64 = 20;
/// Violations that are kept for each workload.
const MAX_KEPT_VIOLATIONS: usize = 5;

/// What a campaign plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Plans,
    Walk,
    StartStates,
}

/// The walks and start states to play.
pub(crate) struct ExtraRuns {
    focus: Focus,
    remaining: Mutex<Remaining>,
}

#[derive(Default)]
struct Remaining {
    /// Chains still to be walked, and the number of properties of each subject.
    chains: VecDeque<(String, usize)>,
    properties: Vec<(String, usize)>,
    /// The workloads that have start states, and the next number of each.
    starts: VecDeque<(String, u64)>,
    /// The only number to play.
    only: Option<u64>,
    walked: Duration,
    started: Duration,
}

impl ExtraRuns {
    pub(crate) fn new(
        workloads: &[Workload],
        only: &str,
        focus: Focus,
        number: Option<u64>,
    ) -> Result<Self> {
        let mut remaining = Remaining {
            only: number,
            ..Remaining::default()
        };
        let subjects = walk::subjects(workloads)?.into_iter();
        let subjects = subjects.filter(|subject| subject.workload.name.contains(only));
        let mut chains = Vec::new();
        for subject in subjects {
            let name = subject.workload.name;
            remaining
                .properties
                .push((name.to_owned(), subject.properties()));
            let numbers = 0..subject.chains();
            let wanted = numbers.filter(|chain| number.is_none_or(|only| only == *chain as u64));
            // Custom kinds are walked completely first; the chains of the others take turns.
            let custom = name == "operation";
            chains.extend(wanted.map(|chain| (if custom { 0 } else { chain + 1 }, name, chain)));
        }
        chains.sort_by_key(|(turn, ..)| *turn);
        let chains = chains.into_iter();
        remaining.chains = chains
            .map(|(_, name, chain)| (name.to_owned(), chain))
            .collect();
        let first = number.unwrap_or_default();
        let starts = StartStatePlayer::of(workloads).names().into_iter();
        remaining.starts = starts.map(|name| (name.to_owned(), first)).collect();
        let remaining = Mutex::new(remaining);
        Ok(Self { focus, remaining })
    }

    /// Whether the campaign plays no plans.
    pub(crate) fn plays_no_plans(&self) -> bool {
        self.focus != Focus::Plans
    }

    /// The workloads whose plans are played.
    pub(crate) fn played<'a>(&self, workloads: &'a [Workload]) -> &'a [Workload] {
        if self.plays_no_plans() {
            &[]
        } else {
            workloads
        }
    }

    /// The next walk or batch of start states, if one is due.
    pub(crate) fn next_due(&self, watch: Stopwatch, seed: u64) -> Option<WorkerRequest> {
        let mut remaining = self.remaining.lock();
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get() as u32);
        let share = watch.elapsed() * cores / TIME_FRACTION;
        let (walk, start) = match self.focus {
            Focus::Walk => (true, false),
            Focus::StartStates => (false, true),
            Focus::Plans => (remaining.walked < share, remaining.started < share),
        };
        if walk && let Some((subject, chain)) = remaining.chains.pop_front() {
            return Some(WorkerRequest::Walk {
                subject,
                chain,
                seed,
            });
        }
        if !start {
            return None;
        }
        let count = if remaining.only.is_some() {
            1
        } else {
            START_BATCH
        };
        let (workload, from) = remaining.starts.pop_front()?;
        if remaining.only.is_none() {
            remaining.starts.push_back((workload.clone(), from + count));
        }
        Some(WorkerRequest::StartState {
            workload,
            from,
            count,
            seed,
        })
    }

    /// Records the time that it took.
    pub(crate) fn record_time(&self, request: &WorkerRequest, time: Duration) {
        let mut remaining = self.remaining.lock();
        match request {
            WorkerRequest::Walk { .. } => remaining.walked += time,
            _ => remaining.started += time,
        }
    }

    /// Adds the result to the report.
    pub(crate) fn record_result(
        &self,
        request: &WorkerRequest,
        response: WorkerResponse,
        report: &mut CampaignReport,
    ) -> Result<()> {
        match (request, response) {
            (WorkerRequest::Walk { subject, chain, .. }, WorkerResponse::WalkReport(walked)) => {
                let totals = report.walked.entry(subject.clone()).or_default();
                let remaining = self.remaining.lock();
                let all = remaining
                    .properties
                    .iter()
                    .find(|(name, _)| name == subject);
                totals.properties = all.map_or(0, |(_, count)| *count);
                totals.add(*chain, &walked);
            }
            (
                WorkerRequest::StartState {
                    workload, count, ..
                },
                WorkerResponse::Started(bad),
            ) => {
                let totals = report.starts.entry(workload.clone()).or_default();
                totals.played += count;
                totals.add(bad);
            }
            (request, response) => bail!("{request:?}: {response:?}"),
        }
        Ok(())
    }
}

/// The result of the walks through one kind of declaration.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WalkTotals {
    pub(crate) properties: usize,
    /// Properties that were given at least three values.
    pub(crate) driven: usize,
    /// Properties for which the server accepted at least one value.
    pub(crate) taken: usize,
    pub(crate) changes: usize,
    pub(crate) refused: usize,
    pub(crate) kept: usize,
    pub(crate) remade: usize,
    /// The number of violations, and the first of them.
    pub(crate) wrong: usize,
    pub(crate) violations: Vec<String>,
}

impl WalkTotals {
    fn add(&mut self, chain: usize, walked: &WalkReport) {
        let driven = walked.properties.iter().filter(|(_, values)| *values >= 3);
        self.driven += driven.count();
        self.taken += walked.taken;
        self.changes += walked.changes;
        self.refused += walked.refused;
        self.kept += walked.kept;
        self.remade += walked.remade;
        self.wrong += walked.violations.len();
        let room = MAX_KEPT_VIOLATIONS.saturating_sub(self.violations.len());
        let first = walked.violations.iter().take(room);
        self.violations
            .extend(first.map(|violation| format!("chain {chain}: {violation}")));
    }

    pub(crate) fn of(&self, name: &str) -> String {
        let mut text = listed(&self.violations, self.wrong);
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

/// The result of the start states of a workload.
#[derive(Debug, Default, Serialize)]
pub(crate) struct StartStateTotals {
    pub(crate) played: u64,
    /// The number of violations, and the first of them.
    pub(crate) wrong: usize,
    pub(crate) violations: Vec<String>,
}

impl StartStateTotals {
    fn add(&mut self, bad: Vec<(u64, Vec<Violation>)>) {
        for (number, violations) in bad {
            self.wrong += 1;
            if self.violations.len() < MAX_KEPT_VIOLATIONS {
                let words: Vec<_> = violations.iter().map(ToString::to_string).collect();
                self.violations
                    .push(format!("number {number}: {}", words.join("\n    ")));
            }
        }
    }

    pub(crate) fn of(&self, name: &str) -> String {
        let mut text = listed(&self.violations, self.wrong);
        let mark = if self.wrong == 0 { '✓' } else { '✗' };
        let (played, wrong) = (self.played, self.wrong);
        let _ = writeln!(
            text,
            " {mark} starts {name}: {played} start states, {wrong} wrong"
        );
        text
    }
}

fn listed(violations: &[String], all: usize) -> String {
    let mut text = String::new();
    for violation in violations {
        let _ = writeln!(text, "✗ {violation}");
    }
    if all > violations.len() {
        let _ = writeln!(text, "  and {} more", all - violations.len());
    }
    text
}
