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
    judge::Violation,
    starts::{End, Starts},
};
use parking_lot::Mutex;

/// All that have some.
pub(crate) struct StartStates {
    all: Vec<Starts>,
    /// What clean starts came to, by what was declared.
    clean: Mutex<HashMap<String, End>>,
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
            let start = starts.number(number, seed);
            let key = format!("{workload} {:?}", start.declared);
            let known = self.clean.lock().get(&key).cloned();
            let clean = match known {
                Some(clean) => clean,
                None => apart(seed, || starts.clean(&start, seed, ground))
                    .map_err(|error| anyhow::anyhow!("{workload} {number}: {error}"))?,
            };
            let played = apart(seed, || starts.play(&start, &clean, seed, ground));
            self.clean.lock().insert(key, clean);
            let violations =
                played.map_err(|error| anyhow::anyhow!("{workload} {number}: {error}"))?;
            if !violations.is_empty() {
                bad.push((number, violations));
            }
        }
        Ok(bad)
    }
}
