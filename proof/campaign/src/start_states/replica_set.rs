//! Pods of a ReplicaSet: missing, surplus, orphaned, with other labels, being deleted, or foreign.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{
    deleting, failed, foreign_owner, foreign_owner_ref, happens, is_failed, is_kind, owner, path,
    pod, stale, with_status,
};
use crate::world::web;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(counts)
}

fn make(rng: &mut SeededRng) -> StartState {
    let declared = vec![web("ReplicaSet", rng.below(4) as u32)];
    let mine = owner(
        "apps/v1",
        "ReplicaSet",
        "web",
        &path("apps/v1", "replicasets", "web"),
    );
    let mut leftovers = vec![foreign_owner()];
    if happens(rng, 50) {
        let status = stale(rng, &["replicas", "fullyLabeledReplicas", "readyReplicas"]);
        leftovers.push(with_status(&declared[0], &status));
    }
    for number in 0..rng.below(7) {
        let image = if happens(rng, 30) { "app:0" } else { "app:1" };
        let own = pod(&format!("web-{number}"), "web", image, Some(mine.clone()));
        leftovers.push(match rng.below(7) {
            0 => pod(&format!("lost-{number}"), "web", image, None),
            1 => pod(
                &format!("stray-{number}"),
                "other",
                image,
                Some(mine.clone()),
            ),
            2 => pod(
                &format!("foreign-{number}"),
                "web",
                image,
                Some(foreign_owner_ref()),
            ),
            3 => deleting(own),
            4 => failed(own),
            _ => own,
        });
    }
    StartState {
        declared,
        leftovers,
    }
}

/// A ReplicaSet does not compare its pods with the template.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is_kind(place, "/pods") {
        // Released, or left to another controller to remove.
        if place.contains("/stray-") || is_failed(object) {
            return None;
        }
        *object = json!({"ready": object["status"]["conditions"][0]["status"]});
    }
    (!is_kind(place, "/configmaps")).then(|| place.to_owned())
}
