//! What all controllers of pods have in common.

mod adopt;
mod affinity;
mod claim;
mod claimed;
mod claiming;
mod collision;
mod echo;
mod labelled;
mod made;
mod name;
mod number;
mod owner;
mod pod;
mod pods;
mod quantity;
mod refusal;
mod revision;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    adopt::adopt_and_release,
    affinity::{is_wanted, preference, reluctance, tolerates, untolerated},
    claim::{Claimable, claim, owner_of},
    claimed::{claim_name, claim_names},
    claiming::Claiming,
    collision::rename,
    echo::echoed,
    labelled::{Labelled, has_all, label},
    made::Made,
    name::{digest, suffix},
    number::{Round, moment, second, share, some, whole},
    owner::owned_by,
    pod::{
        from_template, has_ended, is_active, is_available, is_ready, is_running, phase, readiness,
        ready_since,
    },
    pods::{create_pods, delete_pod},
    quantity::{Amounts, ONE, add, amount, amounts, at_least},
    refusal::reason,
    revision::{REVISION_HASH, Revisions, describe, template_of},
};
