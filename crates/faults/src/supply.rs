//! Which plans come next: those that once found something, then every fault by itself, then two at
//! a time and by chance until the time is over.

use std::collections::HashSet;

use neap_trial::{
    Entry, Workload,
    generate::{Chance, Place, places, plan, poison, single},
    plan::{ParseError, Plan, Rule, parse},
};

/// So many plans are played from one run without faults.
const BATCH: usize = 100;

/// Plans of one workload, to be played together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) workload: &'static str,
    pub(crate) plans: Vec<Plan>,
}

/// Makes plans, no two alike.
pub(crate) struct Supply {
    seed: u64,
    ready: Vec<Batch>,
    fields: Vec<Field>,
    chance: Chance,
    made: HashSet<String>,
    next: usize,
}

/// What is known of a workload.
struct Field {
    workload: &'static str,
    places: Vec<Place>,
    rules: Vec<Rule>,
    /// What happens to poisoned objects; nothing else happens beside it.
    beside: Vec<Rule>,
}

impl Supply {
    /// Plans for workloads of which a run without faults showed these entries.
    pub(crate) fn new(
        known: &[(&Workload, Vec<Entry>)],
        seed: u64,
        corpus: &str,
    ) -> Result<Self, ParseError> {
        let fields = known.iter().map(|(workload, entries)| {
            let places = places(entries);
            Field {
                workload: workload.name,
                rules: single(&places),
                beside: poison(),
                places,
            }
        });
        let mut supply = Self {
            seed,
            ready: Vec::new(),
            fields: fields.collect(),
            chance: Chance::new(seed),
            made: HashSet::new(),
            next: 0,
        };
        supply.prepare(&parse(corpus)?);
        Ok(supply)
    }

    /// The plans whose number is known, the first to be played last in the list.
    fn prepare(&mut self, corpus: &[Plan]) {
        let mut batches = Vec::new();
        for field in &self.fields {
            let old = corpus.iter().filter(|plan| plan.workload == field.workload);
            // Their places are those of a run with the seed at hand.
            let old = old.map(|plan| Plan {
                seed: self.seed,
                ..plan.clone()
            });
            let alone = field.beside.iter().chain(&field.rules);
            let alone = alone.map(|rule| vec![rule.clone()]);
            let alone = alone.map(|rules| plan(field.workload, self.seed, rules));
            let all: Vec<_> = old.chain(alone).collect();
            for (number, plans) in all.chunks(BATCH).enumerate() {
                let workload = field.workload;
                let plans = plans.to_vec();
                batches.push((number, Batch { workload, plans }));
            }
        }
        // Every workload gets its turn before any gets its second.
        batches.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        for (_, batch) in batches {
            let plans = batch.plans.into_iter();
            let plans: Vec<_> = plans.filter(|plan| self.made.insert(body(plan))).collect();
            self.ready.push(Batch {
                workload: batch.workload,
                plans,
            });
        }
    }

    /// How many plans there are of one fault each.
    pub(crate) fn alone(&self) -> usize {
        let rules = |field: &Field| field.beside.len() + field.rules.len();
        self.fields.iter().map(rules).sum()
    }

    /// Whether every fault was handed out by itself.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.ready.is_empty()
    }

    /// More plans. There is no end of them.
    pub(crate) fn more(&mut self) -> Batch {
        if let Some(batch) = self.ready.pop() {
            return batch;
        }
        let field = &self.fields[self.next % self.fields.len()];
        self.next += 1;
        let mut plans = Vec::new();
        // A small workload may have no others left.
        for _ in 0..BATCH * 4 {
            if plans.len() == BATCH {
                break;
            }
            let rules = if self.chance.below(2) == 0 {
                self.chance.swarm(&field.places)
            } else {
                let two = [self.chance.of(&field.rules), self.chance.of(&field.rules)];
                two.into_iter().flatten().cloned().collect()
            };
            let plan = plan(field.workload, self.seed, rules);
            if self.made.insert(body(&plan)) {
                plans.push(plan);
            }
        }
        Batch {
            workload: field.workload,
            plans,
        }
    }
}

/// What makes a plan another one; its name does not.
fn body(plan: &Plan) -> String {
    let mut rules: Vec<_> = plan.rules.iter().map(ToString::to_string).collect();
    rules.sort_unstable();
    format!("{} {} {}", plan.workload, plan.seed, rules.join("\n"))
}
