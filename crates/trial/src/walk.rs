//! Walks through everything that a declaration can say.
//!
//! Every property gets every kind of value that its schema allows, and some that nobody may accept.
//! A change that the server refuses must change nothing. One that it takes must come to rest, and
//! when it is taken back everything is as it was before. Some changes stay, so that the next meet
//! another declaration; what a chain of them came to is what a fresh start with the same
//! declaration comes to.

mod chain;
mod schema;
mod values;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::schema::{Property, Schema};
use crate::{Ground, Workload, judge::Violation};

/// So many properties are walked through in one run.
const CHAIN: usize = 6;

/// A declaration, those who see to it, and everything that it can say.
#[derive(Debug)]
pub struct Subject {
    /// Those at work, and what is there before. Its steps are not played.
    pub workload: Workload,
    /// A declaration with which all is well.
    pub object: Value,
    /// What it can say.
    pub schema: Schema,
    /// Whether a fresh start must come to the same. What is kept from before may make a difference.
    pub afresh: bool,
    /// How the places of objects begin that may stay when nobody needs them any longer.
    pub leaves: Option<&'static str>,
}

/// What came of a walk.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Walked {
    /// Changes that were asked for.
    pub changes: usize,
    /// Those that the server refused.
    pub refused: usize,
    /// Those that were taken, and taken back.
    pub taken_back: usize,
    /// Those that were made again, and stayed.
    pub kept: usize,
    /// Objects that had to be made anew because the server allows no way back.
    pub remade: usize,
    /// Properties, and how many values each was given.
    pub properties: Vec<(String, usize)>,
    /// Properties of which a value other than the usual one was taken.
    pub taken: usize,
    /// What went wrong.
    pub violations: Vec<Violation>,
}

impl Subject {
    /// How many properties there are.
    pub fn properties(&self) -> usize {
        self.schema.properties().len()
    }

    /// How many chains they make.
    pub fn chains(&self) -> usize {
        self.properties().div_ceil(CHAIN)
    }

    /// Walks through the chain of that number. What comes of it depends on nothing else in a process
    /// of its own.
    pub fn walk(&self, number: usize, seed: u64, ground: &Ground) -> Result<Walked, String> {
        let all = self.schema.properties();
        let chain = all.chunks(CHAIN).nth(number).ok_or("no such chain")?;
        chain::walk(self, chain, seed.wrapping_add(number as u64), ground)
    }
}
