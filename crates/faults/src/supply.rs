//! Which plans come next: those that once found something, then every fault by itself, then in turn
//! two at a time and by chance until the time is over.

mod pairs;
mod swarm;

use std::collections::VecDeque;

use neap_trial::{
    Entry, Workload,
    generate::{places, plan, single},
    plan::{ParseError, Plan, Rule, parse},
};

pub(crate) use swarm::Swarm;

use pairs::Pairs;

/// So many plans are played from one run without faults.
const BATCH: usize = 100;
/// All pairs of so small a workload are played if the time suffices.
const SMALL: usize = 25;

/// Why plans are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// They once found something.
    Corpus,
    /// Every fault by itself.
    Alone,
    /// Every fault with every other.
    Pairs,
    /// By chance.
    Chance,
}

/// Plans of one workload and seed, to be played together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) workload: &'static str,
    pub(crate) seed: u64,
    pub(crate) why: Why,
    pub(crate) plans: Vec<Plan>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Turn {
    /// These plans.
    Play(Batch),
    /// Whatever chance makes of a run that is still to be shown.
    Show(Swarm),
}

/// Makes plans, no two alike.
pub(crate) struct Supply {
    seed: u64,
    ready: VecDeque<Batch>,
    fields: Vec<Field>,
    turns: usize,
}

/// What is known of a workload.
struct Field {
    workload: &'static str,
    small: bool,
    rules: Vec<Rule>,
    /// What happens to poisoned objects.
    beside: Vec<Rule>,
    pairs: Pairs,
}

impl Supply {
    /// Plans for workloads of which a run without faults showed so many writes and these entries.
    pub(crate) fn new(
        known: &[(&Workload, usize, Vec<Entry>)],
        seed: u64,
        corpus: &str,
    ) -> Result<Self, ParseError> {
        let fields = known.iter().map(|(workload, writes, entries)| {
            let rules = single(&places(entries));
            Field {
                workload: workload.name,
                small: *writes <= SMALL,
                beside: workload.poison(),
                pairs: Pairs::of(rules.len(), seed),
                rules,
            }
        });
        let mut supply = Self {
            seed,
            ready: VecDeque::new(),
            fields: fields.collect(),
            turns: 0,
        };
        supply.prepare_corpus(parse(corpus)?);
        supply.prepare_alone();
        Ok(supply)
    }

    /// Each with the seed that it was found with: its places are those of that run.
    fn prepare_corpus(&mut self, corpus: Vec<Plan>) {
        for old in corpus {
            let field = |field: &&Field| field.workload == old.workload;
            let Some(field) = self.fields.iter().find(field) else {
                continue;
            };
            self.ready.push_back(Batch {
                workload: field.workload,
                seed: old.seed,
                why: Why::Corpus,
                plans: vec![old],
            });
        }
    }

    fn prepare_alone(&mut self) {
        let mut batches = Vec::new();
        for field in &self.fields {
            // What happens to poisoned objects happens beside nothing else, so it is in no pair.
            let alone = field.beside.iter().chain(&field.rules).cloned();
            let alone = alone.map(|rule| plan(field.workload, self.seed, vec![rule]));
            let alone: Vec<_> = alone.collect();
            // Each batch has some from every part of the run: what a campaign of any length has
            // played is an even share.
            let count = alone.len().div_ceil(BATCH);
            for number in 0..count {
                let plans = alone.iter().skip(number).step_by(count);
                let batch = Batch {
                    workload: field.workload,
                    seed: self.seed,
                    why: Why::Alone,
                    plans: plans.cloned().collect(),
                };
                batches.push((number, batch));
            }
        }
        // Every workload gets its turn before any gets its second.
        batches.sort_by_key(|(number, _)| *number);
        let batches = batches.into_iter().map(|(_, batch)| batch);
        self.ready.extend(batches);
    }

    /// How many plans there are of one fault each.
    pub(crate) fn alone(&self) -> usize {
        let alone = self.ready.iter().filter(|batch| batch.why == Why::Alone);
        alone.map(|batch| batch.plans.len()).sum()
    }

    /// How many pairs of faults each workload has.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let fields = self.fields.iter();
        fields.map(|field| (field.workload, field.pairs.all()))
    }

    /// What comes next. There is no end of it.
    pub(crate) fn next(&mut self) -> Turn {
        if let Some(batch) = self.ready.pop_front() {
            return Turn::Play(batch);
        }
        let count = self.fields.len();
        let round = self.turns / count;
        let field = &mut self.fields[self.turns % count];
        self.turns += 1;
        // Of a small workload all pairs are to be played, so they come more often.
        let chance = if field.small {
            round % 4 == 3
        } else {
            round % 2 == 1
        };
        if !chance {
            let plans = field.pairs.next(BATCH, &field.rules);
            let plans: Vec<_> = plans
                .map(|rules| plan(field.workload, self.seed, rules))
                .collect();
            if !plans.is_empty() {
                return Turn::Play(Batch {
                    workload: field.workload,
                    seed: self.seed,
                    why: Why::Pairs,
                    plans,
                });
            }
        }
        Turn::Show(Swarm {
            workload: field.workload,
            seed: self.seed.wrapping_add(self.turns as u64),
        })
    }
}
