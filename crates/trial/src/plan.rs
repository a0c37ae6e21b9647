//! What goes wrong in a run, and where: a value with a text that people can read and write.

mod action;
mod parse;
mod point;

use std::fmt;

pub use action::{Action, Fault};
pub use parse::{ParseError, parse};
pub use point::{Filter, Nth, Point, Verb, Who, plural};

/// One try: a workload, the seed of its chances, and the faults it meets.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What people call it.
    pub name: String,
    /// What is done while the faults strike.
    pub workload: String,
    /// Where every chance in the run comes from.
    pub seed: u64,
    /// What strikes.
    pub rules: Vec<Rule>,
}

/// One fault and the moment at which it strikes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Where.
    pub point: Point,
    /// At which of the things that pass there.
    pub filter: Filter,
    /// At the how manieth of those.
    pub nth: Nth,
    /// At whose.
    pub actor: Who,
    /// What then happens.
    pub action: Action,
}

impl Plan {
    /// A run in which nothing goes wrong.
    pub fn calm(workload: &str, seed: u64) -> Self {
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
