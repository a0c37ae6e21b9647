//! What all controllers of pods have in common.

mod claim;
mod claiming;
mod name;
mod pod;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    claim::{ORPHANS, claim, owner_of, owner_or_orphan},
    claiming::Claiming,
    name::suffix,
    pod::{from_template, is_active, is_available, is_ready, phase, ready_since},
};
