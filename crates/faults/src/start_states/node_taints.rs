//! Nodes whose taints say what was so once.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{End, Start, Starts},
};
use serde_json::{Value, json};

use super::parts::happens;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts::new(workload, make)
        .counting(|_, _| None)
        .wrong_if(wrong)
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The taint of a user, and where its effects are written down.
const USERS: &str = "gpu";
const REMEMBERED: &str = "example.org/users-taints";

fn make(chance: &mut Chance) -> Start {
    let mut remains = Vec::new();
    for number in 0..=chance.below(4) {
        let mut taints = Vec::new();
        for key in [NOT_READY, UNSCHEDULABLE, USERS] {
            for effect in ["NoSchedule", "NoExecute"] {
                if happens(chance, 30) {
                    taints.push(json!({"key": key, "effect": effect}));
                }
            }
        }
        // What a user has put there is told twice: once where nobody else writes.
        let own = taints.iter().filter(|taint| taint["key"] == USERS);
        let own: Vec<_> = own.map(|taint| &taint["effect"]).collect();
        let own = json!({ REMEMBERED: json!(own).to_string() });
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}"), "annotations": own},
            "spec": {"taints": taints, "unschedulable": happens(chance, 50)},
        });
        if happens(chance, 80) {
            let status = ["True", "False", "Unknown"][chance.below(3)];
            node["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
        }
        remains.push(node);
    }
    Start {
        declared: Vec::new(),
        remains,
    }
}

fn wrong(end: &End) -> Option<String> {
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
