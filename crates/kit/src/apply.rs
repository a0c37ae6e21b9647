//! From desired objects to writes: a plan, and the writer that executes it.
//!
//! [`plan`] compares desired objects with live ones and returns what to create, update and delete,
//! each with its reason. A plan is a value: it can be logged, tested and shown as a dry run. A
//! [`Writer`] makes the writes; nothing else writes.
//!
//! Invariants:
//! - nothing is written when nothing changes;
//! - only a leader starts a write, and only to the object that was read: the write names its uid;
//! - every write is counted, and reported to the observer if there is one;
//! - only our own objects are deleted: those with our owner and our label that are no longer desired.

mod difference;
mod merge;
mod object;
mod plan;
#[cfg(test)]
mod tests;
mod write;
mod writer;

pub use self::{
    difference::differences,
    object::Object,
    plan::{DesiredObject, IfExists, ObjectRef, Plan, PlannedChange, ResourceKind, plan},
    write::{Write, WriteObserver},
    writer::{Error, Writer},
};

/// The annotation with a hash of the desired object that was last applied. It changes when a field is
/// dropped from the desired object, so that the field is removed from the live one.
pub const APPLIED: &str = "neaptide.dev/applied";
