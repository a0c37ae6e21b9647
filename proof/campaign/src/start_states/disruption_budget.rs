//! A budget whose status describes pods that do not exist.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{happens, with_status};
use crate::world::{disruption_budget::budget, web};

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make).counting(|place, object| {
        forget_empty(object);
        Some(place.to_owned())
    })
}

fn make(rng: &mut SeededRng) -> StartState {
    let mut budget = budget();
    let wanted = [json!(1), json!(2), json!("50%")][rng.below(3)].clone();
    budget["spec"]["minAvailable"] = wanted;
    let declared = vec![budget, web("ReplicaSet", rng.below(4) as u32)];
    let mut leftovers = Vec::new();
    if happens(rng, 80) {
        let mut status = json!({
            "currentHealthy": rng.below(5), "desiredHealthy": rng.below(5),
            "disruptionsAllowed": rng.below(5), "expectedPods": rng.below(5),
        });
        if happens(rng, 30) {
            let disrupted = json!({"web-gone": "2025-12-31T23:00:00Z"});
            status["disruptedPods"] = disrupted;
        }
        if happens(rng, 30) {
            status["observedGeneration"] = 1.into();
        }
        leftovers.push(with_status(&declared[0], &status));
    }
    StartState {
        declared,
        leftovers,
    }
}

/// An empty map of disrupted pods equals none.
fn forget_empty(budget: &mut Value) {
    if let Some(status) = budget["status"].as_object_mut() {
        status.retain(|_, value| *value != json!({}));
    }
}
