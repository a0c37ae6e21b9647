//! A budget whose status tells of pods that are not there.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{Start, Starts},
};
use serde_json::{Value, json};

use super::parts::{happens, said};
use crate::world::{disruption_budget::budget, web};

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make).counting(|place, object| {
        forget_empty(object);
        Some(place.to_owned())
    })
}

fn make(chance: &mut Chance) -> Start {
    let mut budget = budget();
    let wanted = [json!(1), json!(2), json!("50%")][chance.below(3)].clone();
    budget["spec"]["minAvailable"] = wanted;
    let declared = vec![budget, web("ReplicaSet", chance.below(4) as u32)];
    let mut remains = Vec::new();
    if happens(chance, 80) {
        let mut status = json!({
            "currentHealthy": chance.below(5), "desiredHealthy": chance.below(5),
            "disruptionsAllowed": chance.below(5), "expectedPods": chance.below(5),
        });
        if happens(chance, 30) {
            let disrupted = json!({"web-gone": "2025-12-31T23:00:00Z"});
            status["disruptedPods"] = disrupted;
        }
        if happens(chance, 30) {
            status["observedGeneration"] = 1.into();
        }
        remains.push(said(&declared[0], &status));
    }
    Start { declared, remains }
}

/// An empty list of pods that were disrupted is as good as none.
fn forget_empty(budget: &mut Value) {
    if let Some(status) = budget["status"].as_object_mut() {
        status.retain(|_, value| *value != json!({}));
    }
}
