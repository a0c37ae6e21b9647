//! The counts of an orphan run.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Value, json};

use super::{KillPhase, KillResult, process_family::ProcessEntry};

/// The counts of an orphan run.
#[derive(Debug, Clone, Default)]
pub struct OrphanTally {
    phases: BTreeMap<KillPhase, PhaseTally>,
    pub left: Vec<RemainingProcess>,
}

/// The kills at one moment.
#[derive(Debug, Clone, Default)]
struct PhaseTally {
    /// The number of processes before each.
    processes: Vec<usize>,
    /// Times from the kill until the last of them was gone.
    gone: Vec<Duration>,
    failed: usize,
}

/// A remaining process.
#[derive(Debug, Clone)]
pub struct RemainingProcess {
    /// The number of the kill, starting at one.
    pub attempt: usize,
    /// The state of the pods.
    pub phase: KillPhase,
    pub process: ProcessEntry,
}

impl OrphanTally {
    pub(super) fn count(&mut self, attempt: usize, phase: KillPhase, seen: KillResult) {
        let tries = self.phases.entry(phase).or_default();
        tries.processes.push(seen.processes);
        if seen.left.is_empty() {
            tries.gone.push(seen.gone);
        } else {
            tries.failed += 1;
        }
        self.left
            .extend(seen.left.into_iter().map(|process| RemainingProcess {
                attempt,
                phase,
                process,
            }));
    }

    pub fn tries(&self) -> usize {
        let tries = self.phases.values().map(|tries| tries.processes.len());
        tries.sum()
    }

    /// How many processes were at stake at each try of a moment, at least.
    pub fn at_stake(&self, phase: KillPhase) -> usize {
        let tries = self.phases.get(&phase);
        tries
            .and_then(|tries| tries.processes.iter().min().copied())
            .unwrap_or_default()
    }

    /// The JSON form.
    pub fn json(&self, seed: u64) -> Value {
        let phases = self.phases.iter().map(|(phase, tries)| {
            let (middle, longest) = tries.times();
            let value = json!({
                "tries": tries.processes.len(),
                "failed": tries.failed,
                "processes": tries.processes.iter().sum::<usize>(),
                "goneMillisecondsP50": middle.as_millis(),
                "goneMillisecondsMax": longest.as_millis(),
            });
            (phase.word().to_owned(), value)
        });
        let left = self.left.iter().map(|left| {
            json!({
                "try": left.attempt, "moment": left.phase.word(), "process": left.process.id,
                "command": left.process.command, "folder": left.process.folder,
            })
        });
        json!({
            "tries": self.tries(), "seed": seed,
            "moments": phases.collect::<serde_json::Map<_, _>>(),
            "left": left.collect::<Vec<_>>(),
        })
    }
}

impl PhaseTally {
    /// The median and the maximum.
    fn times(&self) -> (Duration, Duration) {
        let mut sorted = self.gone.clone();
        sorted.sort();
        let middle = sorted.get(sorted.len() / 2).copied();
        let longest = sorted.last().copied();
        (middle.unwrap_or_default(), longest.unwrap_or_default())
    }
}

/// A line for each moment, and one for each remaining process.
impl fmt::Display for OrphanTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (phase, tries) in &self.phases {
            let (middle, longest) = tries.times();
            writeln!(
                f,
                "{:<9} tries {}, of which left something {}; processes at stake {}, gone after {middle:.0?} (p50), {longest:.0?} (max)",
                phase.word(),
                tries.processes.len(),
                tries.failed,
                tries.processes.iter().sum::<usize>(),
            )?;
        }
        for left in &self.left {
            writeln!(f, "{left}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RemainingProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessEntry {
            id,
            command,
            folder,
            ..
        } = &self.process;
        write!(
            f,
            "left: try {}, {}: process {id}, {command:?} in {folder}",
            self.attempt,
            self.phase.word()
        )
    }
}
