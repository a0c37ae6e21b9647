//! Nodes whose taints say what was so once.

use neap_trial::{
    Workload,
    generate::Chance,
    starts::{End, Start, Starts},
};
use serde_json::{Value, json};

use super::parts::happens;

pub(super) fn starts(workload: Workload) -> Starts {
    Starts {
        workload,
        make,
        counts: |_, _| None,
        wrong,
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

fn make(chance: &mut Chance) -> Start {
    let mut remains = Vec::new();
    for number in 0..=chance.below(4) {
        let mut taints = Vec::new();
        for key in [NOT_READY, UNSCHEDULABLE, "gpu"] {
            for effect in ["NoSchedule", "NoExecute"] {
                if happens(chance, 30) {
                    taints.push(json!({"key": key, "effect": effect}));
                }
            }
        }
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")},
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
        let wanted = (usize::from(!ready), usize::from(cordoned));
        let found = (has(NOT_READY), has(UNSCHEDULABLE));
        (wanted != found).then(|| format!("{} has other taints", node["metadata"]["name"]))
    })
}
