//! Pods of a ReplicaSet: missing, too many, lost, strayed, on their way out, or another's.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{
    failed, going, happens, is, is_failed, of_stranger, owner, path, pod, said, stale, stranger,
};
use crate::world::web;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(counts)
}

fn make(chance: &mut Chance) -> Start {
    let declared = vec![web("ReplicaSet", chance.below(4) as u32)];
    let mine = owner(
        "apps/v1",
        "ReplicaSet",
        "web",
        &path("apps/v1", "replicasets", "web"),
    );
    let mut remains = vec![stranger()];
    if happens(chance, 50) {
        let status = stale(
            chance,
            &["replicas", "fullyLabeledReplicas", "readyReplicas"],
        );
        remains.push(said(&declared[0], &status));
    }
    for number in 0..chance.below(7) {
        let image = if happens(chance, 30) {
            "app:0"
        } else {
            "app:1"
        };
        let own = pod(&format!("web-{number}"), "web", image, Some(mine.clone()));
        remains.push(match chance.below(7) {
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
                Some(of_stranger()),
            ),
            3 => going(own),
            4 => failed(own),
            _ => own,
        });
    }
    Start { declared, remains }
}

/// A ReplicaSet does not mind how its pods look.
fn counts(place: &str, object: &mut Value) -> Option<String> {
    if is(place, "/pods") {
        // Let go, or for somebody else to remove.
        if place.contains("/stray-") || is_failed(object) {
            return None;
        }
        *object = json!({"ready": object["status"]["conditions"][0]["status"]});
    }
    (!is(place, "/configmaps")).then(|| place.to_owned())
}
