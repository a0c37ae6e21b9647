//! Functions shared by the workload controllers.

mod adopt;
mod affinity;
mod claim_names;
mod collision;
mod controller_ref;
mod create_results;
mod error_message;
mod label_index;
mod names;
mod numbers;
mod own_writes;
mod owner;
mod owner_enqueuer;
mod pod;
mod pod_control;
mod quantity;
mod revision;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    adopt::adopt_and_release,
    affinity::{
        matches_node_affinity, preferred_affinity_weight, soft_taint_count, tolerates, untolerated,
    },
    claim_names::{claim_name, claim_names},
    collision::increment_collision_count,
    controller_ref::{OwnerIndex, claim, owner_of},
    create_results::CreateResults,
    error_message::error_message,
    label_index::{LabelIndex, has_all, label},
    names::{digest, suffix},
    numbers::{Round, api_time, nonzero, scaled_value, to_i32, truncate_to_second},
    own_writes::wait_for_own_write,
    owner::owned_by,
    owner_enqueuer::OwnerEnqueuer,
    pod::{
        from_template, has_ended, is_active, is_available, is_ready, is_running, phase, readiness,
        ready_since,
    },
    pod_control::{create_pods, delete_pod},
    quantity::{Amounts, ONE, add, amount, amounts, at_least},
    revision::{REVISION_HASH, RevisionHistory, new_revision, template_of},
};
