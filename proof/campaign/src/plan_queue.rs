//! The order of plans: those of the corpus, then every single fault, then pairs and random
//! combinations in turn until the time is used up. A workload with few faults does not wait for
//! those with many: it goes on to its pairs until it has had its fair share.

mod pairs;
mod swarm;

use std::collections::VecDeque;

use neap_trial::{
    TraceEntry, Workload,
    generate::{fault_sites, plan, single},
    plan::{ParseError, Plan, Rule, parse},
};

pub(crate) use swarm::Swarm;

use pairs::Pairs;

/// Plans that are played from one run without faults.
const BATCH: usize = 100;
/// Writes up to which a workload counts as small: all its pairs are played if time suffices.
const SMALL_WRITES: usize = 25;
/// Plans that every workload gets before the large ones continue with their single faults.
const FAIR_SHARE: usize = 1_000;

/// Why plans are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanSource {
    /// They once found something.
    Corpus,
    /// Every single fault.
    Alone,
    /// Every pair of faults.
    Pairs,
    /// Random combinations.
    SeededRng,
}

/// Plans of one workload and seed, played together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) workload: &'static str,
    pub(crate) seed: u64,
    pub(crate) source: PlanSource,
    pub(crate) plans: Vec<Plan>,
}

/// The next item to play.
#[derive(Debug)]
pub(crate) enum NextItem {
    Play(Batch),
    /// Random plans, made from a run that has not been played yet.
    Show(Swarm),
}

/// Generates plans, no two alike.
pub(crate) struct PlanQueue {
    seed: u64,
    corpus: VecDeque<Batch>,
    workloads: Vec<WorkloadPlans>,
    rounds: usize,
}

/// The plans of a workload.
struct WorkloadPlans {
    workload: &'static str,
    seed: u64,
    small: bool,
    rules: Vec<Rule>,
    /// Single faults that have not been played yet.
    alone: VecDeque<Vec<Plan>>,
    pairs: Pairs,
    /// The number of plans that were handed out, without the corpus.
    handed_out: usize,
}

impl WorkloadPlans {
    fn new(workload: &Workload, writes: usize, entries: &[TraceEntry], seed: u64) -> Self {
        let rules = single(&fault_sites(entries));
        Self {
            workload: workload.name,
            seed,
            small: writes <= SMALL_WRITES,
            alone: alone(workload, &rules, seed),
            pairs: Pairs::of(rules.len(), seed),
            rules,
            handed_out: 0,
        }
    }

    /// Whether it lacks its share, or a single fault.
    fn is_due(&self) -> bool {
        !self.alone.is_empty() || (self.handed_out < FAIR_SHARE && !self.pairs.is_over())
    }

    fn next_alone(&mut self) -> Option<Batch> {
        let plans = self.alone.pop_front()?;
        Some(self.batch(PlanSource::Alone, plans))
    }

    fn next_pairs(&mut self) -> Option<Batch> {
        let plans = self.pairs.next(BATCH, &self.rules);
        let plans = plans.map(|rules| plan(self.workload, self.seed, rules));
        let plans: Vec<_> = plans.collect();
        (!plans.is_empty()).then(|| self.batch(PlanSource::Pairs, plans))
    }

    fn batch(&mut self, source: PlanSource, plans: Vec<Plan>) -> Batch {
        self.handed_out += plans.len();
        Batch {
            workload: self.workload,
            seed: self.seed,
            source,
            plans,
        }
    }
}

/// All single faults, in batches. Each batch has faults from every part of the run, so that a
/// campaign of any length has played an even sample.
fn alone(workload: &Workload, rules: &[Rule], seed: u64) -> VecDeque<Vec<Plan>> {
    // Faults of poisoned objects are combined with no other, so they are in no pair.
    let poison = workload.poison();
    let rules: Vec<_> = poison.iter().chain(rules).collect();
    let count = rules.len().div_ceil(BATCH);
    let batch = |number| {
        let rules = rules.iter().skip(number).step_by(count);
        rules
            .map(|rule| plan(workload.name, seed, vec![Rule::clone(rule)]))
            .collect()
    };
    (0..count).map(batch).collect()
}

impl PlanQueue {
    /// Plans for workloads, with the number of writes and the trace of their runs without faults.
    pub(crate) fn new(
        known: &[(&Workload, usize, Vec<TraceEntry>)],
        seed: u64,
        corpus: &str,
    ) -> Result<Self, ParseError> {
        let workloads = known.iter().map(|(workload, writes, entries)| {
            WorkloadPlans::new(workload, *writes, entries, seed)
        });
        let mut queue = Self {
            seed,
            corpus: VecDeque::new(),
            workloads: workloads.collect(),
            rounds: 0,
        };
        queue.prepare_corpus(parse(corpus)?);
        Ok(queue)
    }

    /// Each plan keeps the seed that it was found with: its sites are those of that run.
    fn prepare_corpus(&mut self, corpus: Vec<Plan>) {
        for old in corpus {
            let workload_plans =
                |workload_plans: &&WorkloadPlans| workload_plans.workload == old.workload;
            let Some(workload_plans) = self.workloads.iter().find(workload_plans) else {
                continue;
            };
            self.corpus.push_back(Batch {
                workload: workload_plans.workload,
                seed: old.seed,
                source: PlanSource::Corpus,
                plans: vec![old],
            });
        }
    }

    /// The number of plans with a single fault.
    pub(crate) fn alone(&self) -> usize {
        let alone = self
            .workloads
            .iter()
            .flat_map(|workload_plans| &workload_plans.alone);
        alone.map(Vec::len).sum()
    }

    /// The number of pairs of each workload.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let workloads = self.workloads.iter();
        workloads.map(|workload_plans| (workload_plans.workload, workload_plans.pairs.all()))
    }

    /// The next item; there is always one.
    pub(crate) fn next(&mut self) -> NextItem {
        let due = self.corpus.pop_front().or_else(|| self.next_due());
        due.map_or_else(|| self.next_in_turn(), NextItem::Play)
    }

    /// A batch for the workload that has had the fewest plans, of those that lack their share.
    fn next_due(&mut self) -> Option<Batch> {
        let due = self
            .workloads
            .iter_mut()
            .filter(|workload_plans| workload_plans.is_due());
        let workload_plans = due.min_by_key(|workload_plans| workload_plans.handed_out)?;
        workload_plans
            .next_alone()
            .or_else(|| workload_plans.next_pairs())
    }

    fn next_in_turn(&mut self) -> NextItem {
        let count = self.workloads.len();
        let round = self.rounds / count;
        let workload_plans = &mut self.workloads[self.rounds % count];
        self.rounds += 1;
        // All pairs of a small workload are to be played, so they come more often.
        let rng = if workload_plans.small {
            round % 4 == 3
        } else {
            round % 2 == 1
        };
        let pairs = if rng {
            None
        } else {
            workload_plans.next_pairs()
        };
        pairs.map_or_else(
            || {
                NextItem::Show(Swarm {
                    workload: workload_plans.workload,
                    seed: self.seed.wrapping_add(self.rounds as u64),
                })
            },
            NextItem::Play,
        )
    }
}
