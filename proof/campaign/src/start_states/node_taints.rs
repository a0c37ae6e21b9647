//! Nodes with outdated taints.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{FinalState, StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::happens;

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make)
        .counting(|_, _| None)
        .wrong_if(wrong)
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// A user's taint, and the annotation that repeats its effects.
const USERS: &str = "gpu";
const REMEMBERED: &str = "example.org/users-taints";

fn make(rng: &mut SeededRng) -> StartState {
    let mut leftovers = Vec::new();
    for number in 0..=rng.below(4) {
        let mut taints = Vec::new();
        for key in [NOT_READY, UNSCHEDULABLE, USERS] {
            for effect in ["NoSchedule", "NoExecute"] {
                if happens(rng, 30) {
                    taints.push(json!({"key": key, "effect": effect}));
                }
            }
        }
        // The user's taints are repeated in an annotation that no controller writes.
        let own = taints.iter().filter(|taint| taint["key"] == USERS);
        let own: Vec<_> = own.map(|taint| &taint["effect"]).collect();
        let own = json!({ REMEMBERED: json!(own).to_string() });
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}"), "annotations": own},
            "spec": {"taints": taints, "unschedulable": happens(rng, 50)},
        });
        if happens(rng, 80) {
            let status = ["True", "False", "Unknown"][rng.below(3)];
            node["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
        }
        leftovers.push(node);
    }
    StartState {
        declared: Vec::new(),
        leftovers,
    }
}

fn wrong(end: &FinalState) -> Option<String> {
    end.at("/nodes").find_map(|node| {
        let has = |key: &str| {
            let taints = node["spec"]["taints"].as_array().into_iter().flatten();
            taints
                .filter(|taint| taint["key"] == key && taint["effect"] == "NoSchedule")
                .count()
        };
        let conditions = node["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut conditions = conditions.filter(|one| one["type"] == "Ready");
        let ready = conditions.any(|one| one["status"] == "True");
        let cordoned = node["spec"]["unschedulable"] == Value::Bool(true);
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let users = taints.filter(|taint| taint["key"] == USERS);
        let users: Vec<_> = users.map(|taint| &taint["effect"]).collect();
        let users = Value::from(json!(users).to_string());
        if node["metadata"]["annotations"][REMEMBERED] != users {
            return Some(format!(
                "{} has lost taints of its user, or got some",
                node["metadata"]["name"]
            ));
        }
        let wanted = (usize::from(!ready), usize::from(cordoned));
        let found = (has(NOT_READY), has(UNSCHEDULABLE));
        (wanted != found).then(|| format!("{} has other taints", node["metadata"]["name"]))
    })
}
