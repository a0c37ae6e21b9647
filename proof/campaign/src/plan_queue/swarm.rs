//! Random plans with several faults of a few kinds.

use neap_trial::{
    TraceEntry,
    generate::{SeededRng, fault_sites, plan, single},
    plan::{Plan, Rule},
};

use super::{BATCH, Batch, PlanSource};

/// Plans with the same first fault: up to that fault they are one run.
const PLANS_PER_RUN: usize = 20;

/// A run with a seed that has not been played yet.
#[derive(Debug)]
pub(crate) struct Swarm {
    pub(crate) workload: &'static str,
    pub(crate) seed: u64,
}

impl Swarm {
    /// Random plans, made from the trace of the run without faults.
    pub(crate) fn plans(&self, entries: &[TraceEntry]) -> Batch {
        let rules = single(&fault_sites(entries));
        let mut rng = SeededRng::new(self.seed);
        let mut plans: Vec<Plan> = Vec::new();
        for _ in 0..BATCH / PLANS_PER_RUN {
            let fit = some_kinds(&rules, &mut rng);
            let Some(first) = (!fit.is_empty()).then(|| rng.below(fit.len())) else {
                continue;
            };
            for _ in 0..PLANS_PER_RUN {
                let mut chosen = vec![fit[first].clone()];
                for _ in 0..rng.below(8) {
                    let later = rng.choose(&fit[first..]);
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
            source: PlanSource::SeededRng,
            plans,
        }
    }
}

/// The faults of three to six kinds.
fn some_kinds<'a>(rules: &'a [Rule], rng: &mut SeededRng) -> Vec<&'a Rule> {
    let words: Vec<_> = rules
        .iter()
        .map(|rule| rule.action.word(rule.point))
        .collect();
    let mut kinds = words.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let count = 3 + rng.below(4);
    let chosen: Vec<_> = (0..count).filter_map(|_| rng.choose(&kinds)).collect();
    let fit = rules.iter().zip(&words);
    let fit = fit.filter(|(_, word)| chosen.contains(word));
    fit.map(|(rule, _)| rule).collect()
}
