//! Which plans come next: those that once found something, then every fault by itself, then in turn
//! two at a time and by chance until the time is over. A workload with few faults does not wait for
//! those with many: it goes on to its pairs until it has had its fair share.

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
/// So many plans every workload gets before the large ones go on with their single faults.
const SHARE: usize = 1_000;

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
    corpus: VecDeque<Batch>,
    fields: Vec<Field>,
    turns: usize,
}

/// What is known of a workload.
struct Field {
    workload: &'static str,
    seed: u64,
    small: bool,
    rules: Vec<Rule>,
    /// Every fault by itself, as far as it has not been given out.
    alone: VecDeque<Vec<Plan>>,
    pairs: Pairs,
    /// How many plans were given out, the corpus aside.
    given: usize,
}

impl Field {
    fn new(workload: &Workload, writes: usize, entries: &[Entry], seed: u64) -> Self {
        let rules = single(&places(entries));
        Self {
            workload: workload.name,
            seed,
            small: writes <= SMALL,
            alone: alone(workload, &rules, seed),
            pairs: Pairs::of(rules.len(), seed),
            rules,
            given: 0,
        }
    }

    /// It has not had its share, or not every fault by itself.
    fn is_owed(&self) -> bool {
        !self.alone.is_empty() || (self.given < SHARE && !self.pairs.is_over())
    }

    fn next_alone(&mut self) -> Option<Batch> {
        let plans = self.alone.pop_front()?;
        Some(self.batch(Why::Alone, plans))
    }

    fn next_pairs(&mut self) -> Option<Batch> {
        let plans = self.pairs.next(BATCH, &self.rules);
        let plans = plans.map(|rules| plan(self.workload, self.seed, rules));
        let plans: Vec<_> = plans.collect();
        (!plans.is_empty()).then(|| self.batch(Why::Pairs, plans))
    }

    fn batch(&mut self, why: Why, plans: Vec<Plan>) -> Batch {
        self.given += plans.len();
        Batch {
            workload: self.workload,
            seed: self.seed,
            why,
            plans,
        }
    }
}

/// Every fault by itself, in batches. Each has some from every part of the run: what a campaign of
/// any length has played is an even share.
fn alone(workload: &Workload, rules: &[Rule], seed: u64) -> VecDeque<Vec<Plan>> {
    // What happens to poisoned objects happens beside nothing else, so it is in no pair.
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

impl Supply {
    /// Plans for workloads of which a run without faults showed so many writes and these entries.
    pub(crate) fn new(
        known: &[(&Workload, usize, Vec<Entry>)],
        seed: u64,
        corpus: &str,
    ) -> Result<Self, ParseError> {
        let fields = known
            .iter()
            .map(|(workload, writes, entries)| Field::new(workload, *writes, entries, seed));
        let mut supply = Self {
            seed,
            corpus: VecDeque::new(),
            fields: fields.collect(),
            turns: 0,
        };
        supply.prepare_corpus(parse(corpus)?);
        Ok(supply)
    }

    /// Each with the seed that it was found with: its places are those of that run.
    fn prepare_corpus(&mut self, corpus: Vec<Plan>) {
        for old in corpus {
            let field = |field: &&Field| field.workload == old.workload;
            let Some(field) = self.fields.iter().find(field) else {
                continue;
            };
            self.corpus.push_back(Batch {
                workload: field.workload,
                seed: old.seed,
                why: Why::Corpus,
                plans: vec![old],
            });
        }
    }

    /// How many plans there are of one fault each.
    pub(crate) fn alone(&self) -> usize {
        let alone = self.fields.iter().flat_map(|field| &field.alone);
        alone.map(Vec::len).sum()
    }

    /// How many pairs of faults each workload has.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let fields = self.fields.iter();
        fields.map(|field| (field.workload, field.pairs.all()))
    }

    /// What comes next. There is no end of it.
    pub(crate) fn next(&mut self) -> Turn {
        let owed = self.corpus.pop_front().or_else(|| self.next_owed());
        owed.map_or_else(|| self.next_in_turn(), Turn::Play)
    }

    /// For the workload that has had the fewest, of those that lack their share or a fault by itself.
    fn next_owed(&mut self) -> Option<Batch> {
        let owed = self.fields.iter_mut().filter(|field| field.is_owed());
        let field = owed.min_by_key(|field| field.given)?;
        field.next_alone().or_else(|| field.next_pairs())
    }

    fn next_in_turn(&mut self) -> Turn {
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
        let pairs = if chance { None } else { field.next_pairs() };
        pairs.map_or_else(
            || {
                Turn::Show(Swarm {
                    workload: field.workload,
                    seed: self.seed.wrapping_add(self.turns as u64),
                })
            },
            Turn::Play,
        )
    }
}
