//! Looks for mistakes that are there.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use neap_trial::{
    Workload,
    generate::{Chance, places, plan, single},
    judge::Violation,
    plan::{Plan, Rule, Verb, parse},
};
use serde::Serialize;

use super::{
    lanes::{calm, each, plant, play},
    table::Bug,
};
use crate::{
    campaign::Worker,
    message::{Answer, Order},
    stopwatch::Stopwatch,
    supply::Swarm,
    workloads,
};

/// So many plans are played together.
const BATCH: usize = 25;
/// So many when nobody waits for the first that fails.
const TOGETHER: usize = 100;
/// A mistake that no single fault shows is looked for under so many other seeds, with several faults
/// at a time. Who is not found by then is not found.
const SWARMS: u64 = 5;

/// What came of the search for one mistake.
#[derive(Debug, Serialize)]
pub(super) struct Hunt {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) guard: bool,
    pub(super) expect: Vec<String>,
    /// All oracles that spoke.
    pub(super) spoke: BTreeSet<&'static str>,
    /// Whether one of those was expected to.
    pub(super) caught: bool,
    /// How many plans were played until then.
    pub(super) plans: usize,
    pub(super) seconds: f64,
    pub(super) small: Option<Small>,
}

/// A failure as small as it could be made.
#[derive(Debug, Serialize)]
pub(super) struct Small {
    pub(super) plan: String,
    pub(super) rules: usize,
    pub(super) steps: Vec<String>,
    pub(super) seconds: f64,
}

/// What came of the same plans while nothing was planted.
#[derive(Debug, Default, Serialize)]
pub(super) struct Calm {
    pub(super) plans: usize,
    /// Those whose fault did not strike: some moments are only there with a mistake.
    pub(super) void: usize,
    pub(super) violations: Vec<(String, Vec<Violation>)>,
}

/// Looks for each, then plays all plans of the search again without any of them.
pub(super) fn run(bugs: &[Bug], seed: u64) -> Result<(Vec<Hunt>, Calm)> {
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
    let mut alike: BTreeMap<(String, u64), Vec<Plan>> = BTreeMap::new();
    for plan in plans.into_values() {
        let of = (plan.workload.clone(), plan.seed);
        alike.entry(of).or_default().push(plan);
    }
    let batches = alike.values().flat_map(|plans| plans.chunks(TOGETHER));
    eprintln!("playing what was played without any mistake …");
    let outcomes = each(batches.collect(), seed, |worker, plans| {
        let outcomes = play(worker, plans)?;
        Ok(plans.iter().zip(outcomes).collect::<Vec<_>>())
    })?;
    let mut calm = Calm::default();
    for (plan, outcome) in outcomes.into_iter().flatten() {
        calm.plans += 1;
        calm.void += usize::from(!outcome.idle.is_empty());
        // A fault that did not strike says nothing, here as in a campaign.
        if outcome.idle.is_empty() && !outcome.violations.is_empty() {
            calm.violations.push((plan.to_string(), outcome.violations));
        }
    }
    Ok((hunts, calm))
}

/// What came of it, and the plans that were played.
fn hunt(worker: &mut Worker, bug: &Bug, seed: u64) -> Result<(Hunt, Vec<Plan>)> {
    let watch = Stopwatch::start();
    plant(worker, Some(&bug.name))?;
    let mut trail = Trail {
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

/// The plan that showed it, and how.
type Found = Option<(Plan, Violation)>;

struct Trail<'a> {
    bug: &'a Bug,
    spoke: BTreeSet<&'static str>,
    played: Vec<Plan>,
}

impl Trail<'_> {
    /// Plays its workloads with one fault at a time, then with several.
    fn search(&mut self, worker: &mut Worker, seed: u64) -> Result<Found> {
        let bug = self.bug;
        for workload in &bug.workloads {
            let found = self.follow(worker, workload, seed)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for seed in (1..=SWARMS).map(|number| seed.wrapping_add(number)) {
            for workload in &bug.workloads {
                let found = self.follow_swarm(worker, workload, seed)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Plays a workload without faults, beside poisoned objects and with each fault, until an oracle
    /// speaks that should.
    fn follow(&mut self, worker: &mut Worker, workload: &str, seed: u64) -> Result<Found> {
        let (entries, says) = calm(worker, workload, seed)?;
        if let Some(violation) = self.heard(&says) {
            return Ok(Some((Plan::calm(workload, seed), violation)));
        }
        let all = workloads();
        let known = all.iter().find(|known| known.name == workload);
        let mut rules = known.map(Workload::poison).unwrap_or_default();
        rules.extend(in_turn(single(&places(&entries)), seed));
        let rules = rules.into_iter();
        let plans: Vec<_> = rules.map(|rule| plan(workload, seed, vec![rule])).collect();
        self.play(worker, &plans)
    }

    /// The same with several faults at a time, of a run that has a seed of its own.
    fn follow_swarm(&mut self, worker: &mut Worker, workload: &str, seed: u64) -> Result<Found> {
        let all = workloads();
        let Some(known) = all.iter().find(|known| known.name == workload) else {
            return Ok(None);
        };
        let (entries, _) = calm(worker, workload, seed)?;
        let workload = known.name;
        let swarm = Swarm { workload, seed }.plans(&entries);
        self.play(worker, &swarm.plans)
    }

    fn play(&mut self, worker: &mut Worker, plans: &[Plan]) -> Result<Found> {
        for batch in plans.chunks(BATCH) {
            let outcomes = play(worker, batch)?;
            for (plan, outcome) in batch.iter().zip(outcomes) {
                self.played.push(plan.clone());
                if !outcome.idle.is_empty() {
                    // A fault that did not strike shows nothing.
                    continue;
                }
                if let Some(violation) = self.heard(&outcome.violations) {
                    return Ok(Some((plan.clone(), violation)));
                }
            }
        }
        Ok(None)
    }

    /// Notes who spoke; the first that was expected to.
    fn heard(&mut self, violations: &[Violation]) -> Option<Violation> {
        let ids = violations.iter().map(|violation| violation.oracle.id());
        self.spoke.extend(ids);
        let expected = |violation: &&Violation| {
            let id = violation.oracle.id();
            self.bug.expect.iter().any(|expected| expected == id)
        };
        violations.iter().find(expected).cloned()
    }
}

/// One fault of every kind at every kind of thing before any comes a second time: at the last of its
/// like, which is often an end, then at the first, then by chance.
fn in_turn(rules: Vec<Rule>, seed: u64) -> Vec<Rule> {
    let mut likes: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for rule in rules {
        let verb = rule.filter.verb.map(Verb::word);
        let (word, kind) = (rule.action.word(rule.point), &rule.filter.kind);
        let like = format!("{word} {verb:?} {kind:?}");
        likes.entry(like).or_default().push(rule);
    }
    let mut chance = Chance::new(seed);
    let mut placed: Vec<(usize, Rule)> = Vec::new();
    for rules in likes.into_values() {
        let last = rules.len() - 1;
        let drawn = rules.into_iter().enumerate().map(|(place, rule)| {
            let turn = match place {
                _ if place == last => 0,
                0 => 1,
                _ => 2 + chance.below(last),
            };
            (turn, rule)
        });
        placed.extend(drawn);
    }
    placed.sort_by_key(|(turn, _)| *turn);
    placed.into_iter().map(|(_, rule)| rule).collect()
}

fn shrink(worker: &mut Worker, plan: &Plan, found: &Violation) -> Result<Small> {
    let watch = Stopwatch::start();
    let order = Order::Shrink {
        plan: plan.to_string(),
        found: found.clone(),
    };
    let Answer::Shrunk { plan, steps, .. } = worker.ask(&order)? else {
        bail!("{plan} could not be made smaller");
    };
    let rules = parse(&plan)?.iter().map(|plan| plan.rules.len()).sum();
    Ok(Small {
        plan,
        rules,
        steps,
        seconds: watch.elapsed().as_secs_f64(),
    })
}
