//! What was left, and what was not, in numbers.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Value, json};

use super::{Moment, Seen, kin::Process};

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    moments: BTreeMap<Moment, Tries>,
    /// Who was left.
    pub left: Vec<Left>,
}

/// The tries of one moment.
#[derive(Debug, Clone, Default)]
struct Tries {
    /// The processes that were at stake in each.
    processes: Vec<usize>,
    /// From the kill until the last of them was gone.
    gone: Vec<Duration>,
    failed: usize,
}

/// A process that was left.
#[derive(Debug, Clone)]
pub struct Left {
    /// In which try, counted from one.
    pub attempt: usize,
    /// What the pods were doing.
    pub moment: Moment,
    /// Who.
    pub process: Process,
}

impl Tally {
    pub(super) fn count(&mut self, attempt: usize, moment: Moment, seen: Seen) {
        let tries = self.moments.entry(moment).or_default();
        tries.processes.push(seen.processes);
        if seen.left.is_empty() {
            tries.gone.push(seen.gone);
        } else {
            tries.failed += 1;
        }
        self.left.extend(seen.left.into_iter().map(|process| Left {
            attempt,
            moment,
            process,
        }));
    }

    /// How often it was tried.
    pub fn tries(&self) -> usize {
        let tries = self.moments.values().map(|tries| tries.processes.len());
        tries.sum()
    }

    /// How many processes were at stake at each try of a moment, at least.
    pub fn at_stake(&self, moment: Moment) -> usize {
        let tries = self.moments.get(&moment);
        tries
            .and_then(|tries| tries.processes.iter().min().copied())
            .unwrap_or_default()
    }

    /// For programs.
    pub fn json(&self, seed: u64) -> Value {
        let moments = self.moments.iter().map(|(moment, tries)| {
            let (middle, longest) = tries.times();
            let value = json!({
                "tries": tries.processes.len(),
                "failed": tries.failed,
                "processes": tries.processes.iter().sum::<usize>(),
                "goneMillisecondsP50": middle.as_millis(),
                "goneMillisecondsMax": longest.as_millis(),
            });
            (moment.word().to_owned(), value)
        });
        let left = self.left.iter().map(|left| {
            json!({
                "try": left.attempt, "moment": left.moment.word(), "process": left.process.id,
                "command": left.process.command, "folder": left.process.folder,
            })
        });
        json!({
            "tries": self.tries(), "seed": seed,
            "moments": moments.collect::<serde_json::Map<_, _>>(),
            "left": left.collect::<Vec<_>>(),
        })
    }
}

impl Tries {
    /// The middle one and the longest.
    fn times(&self) -> (Duration, Duration) {
        let mut sorted = self.gone.clone();
        sorted.sort();
        let middle = sorted.get(sorted.len() / 2).copied();
        let longest = sorted.last().copied();
        (middle.unwrap_or_default(), longest.unwrap_or_default())
    }
}

/// A line for each moment, and one for each process that was left.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (moment, tries) in &self.moments {
            let (middle, longest) = tries.times();
            writeln!(
                f,
                "{:<9} tries {}, of which left something {}; processes at stake {}, gone after {middle:.0?} (p50), {longest:.0?} (max)",
                moment.word(),
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

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process {
            id,
            command,
            folder,
            ..
        } = &self.process;
        write!(
            f,
            "left: try {}, {}: process {id}, {command:?} in {folder}",
            self.attempt,
            self.moment.word()
        )
    }
}
