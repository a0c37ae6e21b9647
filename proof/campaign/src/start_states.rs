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
    ClusterTemplate, Workload,
    child_process::in_child_process,
    judge::{Oracle, Violation},
    start_states::{CleanResult, StartStates},
};
use parking_lot::Mutex;

/// All workloads that have start states.
pub(crate) struct StartStatePlayer {
    all: Vec<StartStates>,
    /// The results of clean starts, by what was declared.
    clean: Mutex<HashMap<String, CleanResult>>,
}

impl StartStatePlayer {
    pub(crate) fn of(workloads: &[Workload]) -> Self {
        let all = workloads.iter().filter_map(|workload| {
            let starts = match workload.name {
                "claim" => claim::start_states,
                "cron-job" => cron_job::start_states,
                "daemon-set" => daemon_set::start_states,
                "deployment" => deployment::start_states,
                "disruption-budget" => disruption_budget::start_states,
                "job" => job::start_states,
                "node-taints" => node_taints::start_states,
                "replica-set" => replica_set::start_states,
                "scheduler" => scheduler::start_states,
                "service" => service::start_states,
                "stateful-set" => stateful_set::start_states,
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

    /// The numbers that fail, with their violations.
    pub(crate) fn play(
        &self,
        workload: &str,
        numbers: Range<u64>,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<Vec<(u64, Vec<Violation>)>> {
        let mut all = self.all.iter();
        let starts = all
            .find(|starts| starts.workload.name == workload)
            .with_context(|| format!("{workload} has no start states"))?;
        let mut bad = Vec::new();
        for number in numbers {
            let violations = self.play_one(starts, number, seed, template);
            // A start state that cannot be played is a violation, and the others go on.
            let violations = violations
                .unwrap_or_else(|error| vec![Violation::new(Oracle::Panic, workload, error)]);
            if !violations.is_empty() {
                bad.push((number, violations));
            }
        }
        Ok(bad)
    }

    /// The violations of one start state.
    fn play_one(
        &self,
        starts: &StartStates,
        number: u64,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<Vec<Violation>, String> {
        let start = starts.number(number, seed);
        let key = format!("{} {:?}", starts.workload.name, start.declared);
        let known = self.clean.lock().get(&key).cloned();
        let clean = match known {
            Some(clean) => clean,
            None => in_child_process(seed, || starts.clean(&start, seed, template))?,
        };
        self.clean.lock().insert(key, clean.clone());
        if !clean.violations.is_empty() {
            return Ok(clean.violations);
        }
        in_child_process(seed, || starts.play(&start, &clean.end, seed, template))
    }
}
