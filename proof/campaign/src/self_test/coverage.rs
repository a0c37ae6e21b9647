//! Which kinds of faults strike which workloads.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use neap_trial::{
    generate::{SiteClass, fault_kinds, fault_sites, plan, single},
    plan::{Plan, Rule},
};
use serde::Serialize;

use super::parallel::{each, play, trace_without_faults};
use crate::campaign::WorkerProcess;

/// Faults of each kind that are tried per workload.
const TRIES_PER_KIND: usize = 4;

/// A kind of fault in a workload.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cell {
    /// The number of times it struck.
    Struck(usize),
    /// The workload has no site that it could strike: none of these.
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

fn column(worker: &mut WorkerProcess, workload: &str, seed: u64) -> Result<BTreeMap<String, Cell>> {
    let (entries, _) = trace_without_faults(worker, workload, seed)?;
    let fault_sites = fault_sites(&entries);
    let passing: BTreeSet<SiteClass> = fault_sites.iter().map(SiteClass::of).collect();
    let mut rules: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for rule in single(&fault_sites) {
        rules
            .entry(rule.action.word(rule.point))
            .or_default()
            .push(rule);
    }
    let mut plans: Vec<Plan> = Vec::new();
    for rules in rules.values() {
        let step = rules.len().div_ceil(TRIES_PER_KIND);
        let some = rules.iter().step_by(step);
        plans.extend(some.map(|rule| plan(workload, seed, vec![rule.clone()])));
    }
    let mut struck: BTreeMap<String, usize> = BTreeMap::new();
    for (plan, outcome) in plans.iter().zip(play(worker, &plans)?) {
        for rule in plan.rules.iter().filter(|_| outcome.idle.is_empty()) {
            *struck.entry(rule.action.word(rule.point)).or_default() += 1;
        }
    }
    let cell = |kind: &str, sites: &BTreeSet<SiteClass>| match struck.get(kind) {
        Some(&times) => Cell::Struck(times),
        None if sites.is_disjoint(&passing) => {
            let sites: BTreeSet<_> = sites.iter().map(ToString::to_string).collect();
            let sites: Vec<_> = sites.into_iter().collect();
            Cell::Impossible(format!("no {}", sites.join(", no ")))
        }
        None => Cell::Blank,
    };
    let kinds = fault_kinds().into_iter();
    Ok(kinds
        .map(|(kind, sites)| {
            let cell = cell(&kind, &sites);
            (kind, cell)
        })
        .collect())
}
