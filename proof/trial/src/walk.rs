//! Walks through every value that a declaration can have.
//!
//! Every property gets every kind of value that its schema allows, and some that the server must
//! refuse. A refused change must change nothing. An accepted one must come to rest, and after it is
//! reverted everything must be as before. Some changes are kept, so that later ones meet a
//! different declaration; the result of such a chain must equal that of a fresh start with the same
//! declaration.

mod chain;
mod schema;
mod values;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::schema::{Property, Schema};
use crate::{ClusterTemplate, Workload, judge::Violation};

/// Properties per chain.
const CHAIN_LENGTH: usize = 6;

/// A declaration, its controllers, and its schema.
#[derive(Debug)]
pub struct Subject {
    /// The processes, and the objects that exist before. Its steps are not played.
    pub workload: Workload,
    /// A valid declaration.
    pub object: Value,
    pub schema: Schema,
    /// Whether the result must equal that of a fresh start. State that is kept from before may make
    /// a difference.
    pub afresh: bool,
    /// The prefix of the comparison keys of objects that may remain when they are no longer needed.
    pub leaves: Option<&'static str>,
}

/// The result of a walk.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct WalkReport {
    /// Changes that were requested.
    pub changes: usize,
    /// Changes that the server refused.
    pub refused: usize,
    /// Changes that were accepted, and reverted.
    pub taken_back: usize,
    /// Changes that were made again and kept.
    pub kept: usize,
    /// Objects that had to be created again because the server allows no way back.
    pub remade: usize,
    /// Properties, and the number of values each was given.
    pub properties: Vec<(String, usize)>,
    /// Properties for which a value other than the usual one was accepted.
    pub taken: usize,
    pub violations: Vec<Violation>,
}

impl Subject {
    pub fn properties(&self) -> usize {
        self.schema.properties().len()
    }

    pub fn chains(&self) -> usize {
        self.properties().div_ceil(CHAIN_LENGTH)
    }

    /// Walks the chain with this number. In a child process the result depends on nothing else.
    pub fn walk(
        &self,
        number: usize,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<WalkReport, String> {
        let all = self.schema.properties();
        let chain = all
            .chunks(CHAIN_LENGTH)
            .nth(number)
            .ok_or("no such chain")?;
        chain::walk(self, chain, seed.wrapping_add(number as u64), template)
    }
}
