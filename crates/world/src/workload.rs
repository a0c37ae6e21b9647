//! What all controllers of pods have in common.

mod claim;
mod claiming;
mod labelled;
mod name;
mod owner;
mod pod;
mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    claim::{ORPHANS, claim, owner_of, owner_or_orphan},
    claiming::Claiming,
    labelled::{Labelled, has_all, label},
    name::suffix,
    owner::owned_by,
    pod::{from_template, is_active, is_available, is_ready, phase, ready_since},
    refusal::{reason, report},
};
