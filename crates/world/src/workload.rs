//! What all controllers of pods have in common.

mod adopt;
mod claim;
mod claiming;
mod name;
mod number;
mod pod;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use self::{
    adopt::adopt_and_release,
    claim::{ORPHANS, claim, owner_of, owner_or_orphan},
    claiming::Claiming,
    name::{digest, suffix},
    number::{Round, count, moment, share, some},
    pod::{from_template, is_active, is_available, is_ready, phase, ready_since},
    write::{ECHO, in_words, unless_replaced},
};
