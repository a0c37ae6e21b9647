//! Start states of every workload.

mod claim;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption_budget;
mod job;
mod node_taints;
mod parts;
mod replica_set;
mod scheduler;
mod service;
mod stateful_set;

use std::{collections::HashMap, ops::Range};

use anyhow::{Context, Result};
use neap_trial::{
    Ground, Workload,
    apart::apart,
    judge::{Oracle, Violation},
    starts::{Clean, Starts},
};
use parking_lot::Mutex;

/// All that have some.
pub(crate) struct StartStates {
    all: Vec<Starts>,
    /// What clean starts came to, by what was declared.
    clean: Mutex<HashMap<String, Clean>>,
}

impl StartStates {
    pub(crate) fn of(workloads: &[Workload]) -> Self {
        let all = workloads.iter().filter_map(|workload| {
            let starts = match workload.name {
                "claim" => claim::starts,
                "cron-job" => cron_job::starts,
                "daemon-set" => daemon_set::starts,
                "deployment" => deployment::starts,
                "disruption-budget" => disruption_budget::starts,
                "job" => job::starts,
                "node-taints" => node_taints::starts,
                "replica-set" => replica_set::starts,
                "scheduler" => scheduler::starts,
                "service" => service::starts,
                "stateful-set" => stateful_set::starts,
                _ => return None,
            };
            Some(starts(workload.clone()))
        });
        Self {
            all: all.collect(),
            clean: Mutex::default(),
        }
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|starts| starts.workload.name).collect()
    }

    /// Those of these numbers that go wrong.
    pub(crate) fn play(
        &self,
        workload: &str,
        numbers: Range<u64>,
        seed: u64,
        ground: &Ground,
    ) -> Result<Vec<(u64, Vec<Violation>)>> {
        let mut all = self.all.iter();
        let starts = all
            .find(|starts| starts.workload.name == workload)
            .with_context(|| format!("{workload} has no start states"))?;
        let mut bad = Vec::new();
        for number in numbers {
            let violations = self.play_one(starts, number, seed, ground);
            // Whoever cannot be played says so by its number, and the others go on.
            let violations = violations
                .unwrap_or_else(|error| vec![Violation::new(Oracle::Panic, workload, error)]);
            if !violations.is_empty() {
                bad.push((number, violations));
            }
        }
        Ok(bad)
    }

    /// What goes wrong with the start state of that number.
    fn play_one(
        &self,
        starts: &Starts,
        number: u64,
        seed: u64,
        ground: &Ground,
    ) -> Result<Vec<Violation>, String> {
        let start = starts.number(number, seed);
        let key = format!("{} {:?}", starts.workload.name, start.declared);
        let known = self.clean.lock().get(&key).cloned();
        let clean = match known {
            Some(clean) => clean,
            None => apart(seed, || starts.clean(&start, seed, ground))?,
        };
        self.clean.lock().insert(key, clean.clone());
        if !clean.violations.is_empty() {
            return Ok(clean.violations);
        }
        apart(seed, || starts.play(&start, &clean.end, seed, ground))
    }
}
