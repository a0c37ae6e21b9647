//! Searches for planted mistakes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use neap_trial::{
    Workload,
    generate::{SeededRng, fault_sites, plan, single},
    judge::Violation,
    plan::{Plan, Rule, Verb, parse},
};
use serde::Serialize;

use super::{
    parallel::{each, plant, play, trace_without_faults},
    table::Bug,
};
use crate::{
    campaign::WorkerProcess,
    plan_queue::Swarm,
    protocol::{WorkerRequest, WorkerResponse},
    stopwatch::Stopwatch,
    workloads,
};

/// Plans per batch.
const BATCH: usize = 25;
/// Plans per batch when all are played, rather than up to the first failure.
const FULL_BATCH: usize = 100;
/// Further seeds under which a mistake that no single fault shows is searched for, with several
/// faults at a time. After these the search ends.
const SWARMS: u64 = 5;

/// The result of the search for one mistake.
#[derive(Debug, Serialize)]
pub(super) struct Hunt {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) guard: bool,
    pub(super) expect: Vec<String>,
    /// All oracles that reported a violation.
    pub(super) spoke: BTreeSet<&'static str>,
    /// Whether one of those was expected.
    pub(super) caught: bool,
    /// The number of plans played until then.
    pub(super) plans: usize,
    pub(super) seconds: f64,
    pub(super) small: Option<ReducedFailure>,
}

/// A failure, reduced as far as possible.
#[derive(Debug, Serialize)]
pub(super) struct ReducedFailure {
    pub(super) plan: String,
    pub(super) rules: usize,
    pub(super) steps: Vec<String>,
    pub(super) seconds: f64,
}

/// The result of the same plans without any mistake.
#[derive(Debug, Default, Serialize)]
pub(super) struct ControlRun {
    pub(super) plans: usize,
    /// Plans whose fault did not strike: some sites exist only with a mistake.
    pub(super) void: usize,
    pub(super) violations: Vec<(String, Vec<Violation>)>,
}

/// Searches for each mistake, then plays all plans of the search again without any of them.
pub(super) fn run(bugs: &[Bug], seed: u64) -> Result<(Vec<Hunt>, ControlRun)> {
    let found = each(bugs.iter().collect(), seed, |worker, bug| {
        let found = hunt(worker, bug, seed)?;
        let mark = if found.0.caught { '✓' } else { '✗' };
        let Hunt { plans, seconds, .. } = found.0;
        eprintln!(" {mark} {} after {plans} plans, {seconds:.1} s", bug.name);
        Ok(found)
    })?;
    let (hunts, played): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let mut plans: BTreeMap<String, Plan> = BTreeMap::new();
    for plan in played.into_iter().flatten() {
        plans.insert(plan.to_string(), plan);
    }
    let mut batches_of: BTreeMap<(String, u64), Vec<Plan>> = BTreeMap::new();
    for plan in plans.into_values() {
        let of = (plan.workload.clone(), plan.seed);
        batches_of.entry(of).or_default().push(plan);
    }
    let batches = batches_of
        .values()
        .flat_map(|plans| plans.chunks(FULL_BATCH));
    eprintln!("playing what was played without any mistake …");
    let outcomes = each(batches.collect(), seed, |worker, plans| {
        let outcomes = play(worker, plans)?;
        Ok(plans.iter().zip(outcomes).collect::<Vec<_>>())
    })?;
    let mut calm = ControlRun::default();
    for (plan, outcome) in outcomes.into_iter().flatten() {
        calm.plans += 1;
        calm.void += usize::from(!outcome.idle.is_empty());
        if !outcome.violations.is_empty() {
            calm.violations.push((plan.to_string(), outcome.violations));
        }
    }
    Ok((hunts, calm))
}

/// Searches for one mistake. Also returns the plans that were played.
fn hunt(worker: &mut WorkerProcess, bug: &Bug, seed: u64) -> Result<(Hunt, Vec<Plan>)> {
    let watch = Stopwatch::start();
    plant(worker, Some(&bug.name))?;
    let mut trail = HuntProgress {
        bug,
        spoke: BTreeSet::new(),
        played: Vec::new(),
    };
    let found = trail.search(worker, seed)?;
    let seconds = watch.elapsed().as_secs_f64();
    let small = match &found {
        Some((plan, violation)) => Some(shrink(worker, plan, violation)?),
        None => None,
    };
    plant(worker, None)?;
    let hunt = Hunt {
        name: bug.name.clone(),
        class: bug.class.clone(),
        guard: bug.guard,
        expect: bug.expect.clone(),
        spoke: trail.spoke,
        caught: found.is_some(),
        plans: trail.played.len(),
        seconds,
        small,
    };
    Ok((hunt, trail.played))
}

/// The plan that revealed it, and its violation.
type Revealed = Option<(Plan, Violation)>;

struct HuntProgress<'a> {
    bug: &'a Bug,
    spoke: BTreeSet<&'static str>,
    played: Vec<Plan>,
}

impl HuntProgress<'_> {
    /// Plays its workloads with one fault at a time, then with several.
    fn search(&mut self, worker: &mut WorkerProcess, seed: u64) -> Result<Revealed> {
        let bug = self.bug;
        for workload in &bug.workloads {
            let found = self.search_workload(worker, workload, seed)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for seed in (1..=SWARMS).map(|number| seed.wrapping_add(number)) {
            for workload in &bug.workloads {
                let found = self.search_swarm(worker, workload, seed)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Plays a workload without faults, with poisoned objects and with each fault, until an
    /// expected oracle reports a violation.
    fn search_workload(
        &mut self,
        worker: &mut WorkerProcess,
        workload: &str,
        seed: u64,
    ) -> Result<Revealed> {
        let (entries, says) = trace_without_faults(worker, workload, seed)?;
        if let Some(violation) = self.record_oracles(&says) {
            return Ok(Some((Plan::without_faults(workload, seed), violation)));
        }
        let all = workloads();
        let known = all.iter().find(|known| known.name == workload);
        let mut rules = known.map(Workload::poison).unwrap_or_default();
        rules.extend(interleaved(single(&fault_sites(&entries)), seed));
        let rules = rules.into_iter();
        let plans: Vec<_> = rules.map(|rule| plan(workload, seed, vec![rule])).collect();
        self.play(worker, &plans)
    }

    /// The same with several faults at a time, in a run with another seed.
    fn search_swarm(
        &mut self,
        worker: &mut WorkerProcess,
        workload: &str,
        seed: u64,
    ) -> Result<Revealed> {
        let all = workloads();
        let Some(known) = all.iter().find(|known| known.name == workload) else {
            return Ok(None);
        };
        let (entries, _) = trace_without_faults(worker, workload, seed)?;
        let workload = known.name;
        let swarm = Swarm { workload, seed }.plans(&entries);
        self.play(worker, &swarm.plans)
    }

    fn play(&mut self, worker: &mut WorkerProcess, plans: &[Plan]) -> Result<Revealed> {
        for batch in plans.chunks(BATCH) {
            let outcomes = play(worker, batch)?;
            for (plan, outcome) in batch.iter().zip(outcomes) {
                self.played.push(plan.clone());
                if !outcome.idle.is_empty() {
                    // A fault that did not strike proves nothing.
                    continue;
                }
                if let Some(violation) = self.record_oracles(&outcome.violations) {
                    return Ok(Some((plan.clone(), violation)));
                }
            }
        }
        Ok(None)
    }

    /// Records the oracles; returns the first violation of an expected one.
    fn record_oracles(&mut self, violations: &[Violation]) -> Option<Violation> {
        let ids = violations.iter().map(|violation| violation.oracle.id());
        self.spoke.extend(ids);
        let expected = |violation: &&Violation| {
            let id = violation.oracle.id();
            self.bug.expect.iter().any(|expected| expected == id)
        };
        violations.iter().find(expected).cloned()
    }
}

/// Orders the rules so that one fault of every kind at every kind of request comes first: at the
/// last such request, which is often an end, then at the first, then at random ones.
fn interleaved(rules: Vec<Rule>, seed: u64) -> Vec<Rule> {
    let mut likes: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for rule in rules {
        let verb = rule.filter.verb.map(Verb::word);
        let (word, kind) = (rule.action.word(rule.point), &rule.filter.kind);
        let like = format!("{word} {verb:?} {kind:?}");
        likes.entry(like).or_default().push(rule);
    }
    let mut rng = SeededRng::new(seed);
    let mut placed: Vec<(usize, Rule)> = Vec::new();
    for rules in likes.into_values() {
        let last = rules.len() - 1;
        let drawn = rules.into_iter().enumerate().map(|(place, rule)| {
            let turn = match place {
                _ if place == last => 0,
                0 => 1,
                _ => 2 + rng.below(last),
            };
            (turn, rule)
        });
        placed.extend(drawn);
    }
    placed.sort_by_key(|(turn, _)| *turn);
    placed.into_iter().map(|(_, rule)| rule).collect()
}

fn shrink(worker: &mut WorkerProcess, plan: &Plan, found: &Violation) -> Result<ReducedFailure> {
    let watch = Stopwatch::start();
    let order = WorkerRequest::Shrink {
        plan: plan.to_string(),
        found: found.clone(),
    };
    let WorkerResponse::Shrunk { plan, steps, .. } = worker.request(&order)? else {
        bail!("{plan} could not be reduced");
    };
    let rules = parse(&plan)?.iter().map(|plan| plan.rules.len()).sum();
    Ok(ReducedFailure {
        plan,
        rules,
        steps,
        seconds: watch.elapsed().as_secs_f64(),
    })
}
