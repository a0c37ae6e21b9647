//! Which kinds of faults strike which workloads.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use neap_trial::{
    generate::{Site, kinds, places, plan, single},
    plan::{Plan, Rule},
};
use serde::Serialize;

use super::lanes::{calm, each, play};
use crate::campaign::Worker;

/// So many faults of a kind are tried in a workload.
const TRIES: usize = 4;

/// A kind of fault in a workload.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cell {
    /// It struck so often.
    Struck(usize),
    /// Nothing passes there that it could strike: none of these.
    Impossible(String),
    /// It could strike and did not.
    Blank,
}

/// By kind of fault, then by workload.
pub(super) type Matrix = BTreeMap<String, BTreeMap<&'static str, Cell>>;

pub(super) fn run(workloads: &[&'static str], seed: u64) -> Result<Matrix> {
    let columns = each(workloads.to_vec(), seed, |worker, workload| {
        Ok((workload, column(worker, workload, seed)?))
    })?;
    let mut matrix = Matrix::new();
    for (workload, column) in columns {
        for (kind, cell) in column {
            matrix.entry(kind).or_default().insert(workload, cell);
        }
    }
    Ok(matrix)
}

fn column(worker: &mut Worker, workload: &str, seed: u64) -> Result<BTreeMap<String, Cell>> {
    let (entries, _) = calm(worker, workload, seed)?;
    let places = places(&entries);
    let passing: BTreeSet<Site> = places.iter().map(Site::of).collect();
    let mut rules: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for rule in single(&places) {
        rules
            .entry(rule.action.word(rule.point))
            .or_default()
            .push(rule);
    }
    let mut plans: Vec<Plan> = Vec::new();
    for rules in rules.values() {
        let apart = rules.len().div_ceil(TRIES);
        let some = rules.iter().step_by(apart);
        plans.extend(some.map(|rule| plan(workload, seed, vec![rule.clone()])));
    }
    let mut struck: BTreeMap<String, usize> = BTreeMap::new();
    for (plan, outcome) in plans.iter().zip(play(worker, &plans)?) {
        for rule in plan.rules.iter().filter(|_| outcome.idle.is_empty()) {
            *struck.entry(rule.action.word(rule.point)).or_default() += 1;
        }
    }
    let cell = |kind: &str, sites: &BTreeSet<Site>| match struck.get(kind) {
        Some(&times) => Cell::Struck(times),
        None if sites.is_disjoint(&passing) => {
            let sites: BTreeSet<_> = sites.iter().map(ToString::to_string).collect();
            let sites: Vec<_> = sites.into_iter().collect();
            Cell::Impossible(format!("no {}", sites.join(", no ")))
        }
        None => Cell::Blank,
    };
    let kinds = kinds().into_iter();
    Ok(kinds
        .map(|(kind, sites)| {
            let cell = cell(&kind, &sites);
            (kind, cell)
        })
        .collect())
}
