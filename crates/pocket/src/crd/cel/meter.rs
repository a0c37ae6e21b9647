//! The cost bound: every step of an evaluation is charged.
//!
//! A step is one term evaluated, one element visited, or about ten bytes of text made or read, so
//! the meter bounds memory as well as time.

use std::cell::Cell;

use super::value::Val;

/// Steps one rule may take on one value.
pub(super) const MAX_STEPS_PER_RULE: u64 = 1_000_000;
/// Steps all rules of one object may take together.
pub(super) const MAX_STEPS_PER_OBJECT: u64 = 10_000_000;

/// Why an evaluation gave no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A CEL error; `||`, `&&` and the quantifiers may absorb it.
    Error(String),
    /// The budget is exhausted. Nothing absorbs this.
    Exhausted,
}

impl Fault {
    pub(super) fn error<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Error(message.into()))
    }
}

#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u64>,
}

impl Meter {
    pub(super) fn new(steps: u64) -> Self {
        Self {
            left: Cell::new(steps),
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    pub(super) fn spend(&self, steps: usize) -> Result<(), Fault> {
        let Some(left) = self.left.get().checked_sub(steps as u64) else {
            self.left.set(0);
            return Err(Fault::Exhausted);
        };
        self.left.set(left);
        Ok(())
    }

    /// Charges work that grows with the length of a text.
    pub(super) fn spend_text(&self, bytes: usize) -> Result<(), Fault> {
        self.spend(1 + bytes / 10)
    }

    /// Charges work that reads the whole of a value that may be long.
    pub(super) fn spend_value(&self, value: &Val<'_>) -> Result<(), Fault> {
        match value {
            Val::Text(text) => self.spend_text(text.len()),
            Val::Bytes(bytes) => self.spend_text(bytes.len()),
            _ => Ok(()),
        }
    }
}
