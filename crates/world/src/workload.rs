//! What all controllers of pods have in common.

mod adopt;
mod affinity;
mod claim;
mod claimed;
mod claiming;
mod echo;
mod labelled;
mod name;
mod number;
mod owner;
mod pod;
mod quantity;
mod refusal;
mod revision;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    adopt::adopt_and_release,
    affinity::{is_wanted, preference, reluctance, tolerates, untolerated},
    claim::{ORPHANS, claim, owner_of, owner_or_orphan},
    claimed::{claim_name, claim_names},
    claiming::Claiming,
    echo::{ECHO, echoed},
    labelled::{Labelled, has_all, label},
    name::{digest, suffix},
    number::{Round, count, moment, share, some},
    owner::owned_by,
    pod::{
        from_template, has_ended, is_active, is_available, is_ready, is_running, phase, ready_since,
    },
    quantity::{Amounts, ONE, add, amount, amounts, at_least},
    refusal::{reason, report, unless_replaced},
    revision::{REVISION_HASH, Revisions, describe, template_of},
};
