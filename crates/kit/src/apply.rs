//! From what should be there to what is written: a plan, and the hand that carries it out.
//!
//! [`plan`] compares what a decision wants with what is known to exist and says what to create,
//! change and delete, each with its reason. It is a value: it can be logged, tested and shown as a
//! dry run. A [`Hand`] makes the writes, and is the only one who does.
//!
//! Invariants:
//! - nothing is written when nothing changes;
//! - a write is begun only by a leader, and only to the object that was looked at: it names its uid;
//! - every write is counted, and told to a witness if there is one;
//! - what is deleted was ours: it has our owner and our label, and is no longer wanted.

mod difference;
mod hand;
mod merge;
mod object;
mod plan;
#[cfg(test)]
mod tests;
mod write;

pub use self::{
    difference::differences,
    hand::{Error, Hand},
    object::Object,
    plan::{Change, Goal, Kind, Plan, plan},
    write::{Witness, Write},
};

/// Tells of what an object was made the last time: a change of it takes fields away, too.
pub const APPLIED: &str = "neaptide.dev/applied";
