//! Several faults of a few kinds, under a schedule of their own.

use neap_trial::{
    Entry,
    generate::{Chance, places, plan, single},
    plan::{Plan, Rule},
};

use super::{BATCH, Batch, Why};

/// Plans that share their first fault: up to there they are one run.
const TOGETHER: usize = 20;

/// A run whose seed nobody has seen yet.
#[derive(Debug)]
pub(crate) struct Swarm {
    pub(crate) workload: &'static str,
    pub(crate) seed: u64,
}

impl Swarm {
    /// Plans for it, now that a run without faults has shown these entries.
    pub(crate) fn plans(&self, entries: &[Entry]) -> Batch {
        let rules = single(&places(entries));
        let mut chance = Chance::new(self.seed);
        let mut plans: Vec<Plan> = Vec::new();
        for _ in 0..BATCH / TOGETHER {
            let fit = some_kinds(&rules, &mut chance);
            let Some(first) = (!fit.is_empty()).then(|| chance.below(fit.len())) else {
                continue;
            };
            for _ in 0..TOGETHER {
                let mut chosen = vec![fit[first].clone()];
                for _ in 0..chance.below(8) {
                    let later = chance.of(&fit[first..]);
                    let new = later.filter(|rule| !chosen.contains(rule));
                    chosen.extend(new.map(|rule| (*rule).clone()));
                }
                let plan = plan(self.workload, self.seed, chosen);
                if !plans.iter().any(|other| other.rules == plan.rules) {
                    plans.push(plan);
                }
            }
        }
        Batch {
            workload: self.workload,
            seed: self.seed,
            why: Why::Chance,
            plans,
        }
    }
}

/// The faults of three to six kinds.
fn some_kinds<'a>(rules: &'a [Rule], chance: &mut Chance) -> Vec<&'a Rule> {
    let words: Vec<_> = rules
        .iter()
        .map(|rule| rule.action.word(rule.point))
        .collect();
    let mut kinds = words.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let count = 3 + chance.below(4);
    let chosen: Vec<_> = (0..count).filter_map(|_| chance.of(&kinds)).collect();
    let fit = rules.iter().zip(&words);
    let fit = fit.filter(|(_, word)| chosen.contains(word));
    fit.map(|(rule, _)| rule).collect()
}
