//! A plan: the faults of a run and where they strike, as a value with a readable text form.

mod action;
mod parse;
mod point;

use std::fmt;

pub use action::{Action, Fault};
pub use parse::{ParseError, parse};
pub use point::{ActorFilter, Filter, Nth, Point, Verb, plural};

/// A workload, the seed of its random numbers, and the faults it meets.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub name: String,
    /// The name of the workload.
    pub workload: String,
    /// The seed of every random number in the run.
    pub seed: u64,
    pub rules: Vec<Rule>,
}

/// A fault and the site at which it strikes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub point: Point,
    pub filter: Filter,
    pub nth: Nth,
    pub actor: ActorFilter,
    pub action: Action,
}

impl Plan {
    /// A plan without faults.
    pub fn without_faults(workload: &str, seed: u64) -> Self {
        Self {
            name: "calm".to_owned(),
            workload: workload.to_owned(),
            seed,
            rules: Vec::new(),
        }
    }

    /// The same plan with other rules.
    pub fn with(&self, rules: Vec<Rule>) -> Self {
        Self {
            rules,
            ..self.clone()
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {}", self.name)?;
        writeln!(f, "workload {} seed {}", self.workload, self.seed)?;
        for rule in &self.rules {
            writeln!(f, "{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            point,
            filter,
            nth,
            actor,
            action,
        } = self;
        write!(f, "on {point}{filter}{nth} for {actor} do {action}")
    }
}

#[cfg(test)]
mod tests;
