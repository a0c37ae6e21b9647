//! Pending pods next to bound ones, on nodes of various sizes.

use neap_trial::{
    Workload,
    generate::SeededRng,
    start_states::{FinalState, StartState, StartStates},
};
use serde_json::{Value, json};

use super::parts::{happens, pod};

pub(super) fn start_states(workload: Workload) -> StartStates {
    StartStates::new(workload, make)
        .counting(|_, _| None)
        .wrong_if(wrong)
}

fn make(rng: &mut SeededRng) -> StartState {
    let mut leftovers = Vec::new();
    for number in 0..=rng.below(3) {
        leftovers.push(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")},
            "spec": {"unschedulable": happens(rng, 20)},
            "status": {"allocatable": {"cpu": "1", "pods": (1 + rng.below(4)).to_string()}},
        }));
    }
    // A new node is tainted at first; some stay so.
    for number in 0..leftovers.len() {
        if happens(rng, 85) {
            leftovers.push(json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("node-{number}")}, "spec": {"taints": null},
            }));
        }
    }
    for number in 0..rng.below(7) {
        let mut pod = pod(&format!("pod-{number}"), "web", "app", None);
        let cpu = format!("{}m", 100 * (1 + rng.below(9)));
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        match rng.below(5) {
            0 => pod["status"] = json!({"phase": "Failed"}),
            1 => {
                pod["status"] = json!({"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "once"},
                ]});
            }
            _ => {}
        }
        leftovers.push(pod);
    }
    StartState {
        declared: Vec::new(),
        leftovers,
    }
}

/// No pod is bound where there is no room, and no pod that fits stays pending.
fn wrong(end: &FinalState) -> Option<String> {
    let cpu = |pod: &Value| {
        let asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str();
        let number = asked.unwrap_or_default().trim_end_matches('m');
        number.parse::<u64>().unwrap_or_default()
    };
    let over = |pod: &Value| pod["status"]["phase"] == "Failed";
    let pods: Vec<_> = end.at("/pods").filter(|pod| !over(pod)).collect();
    let waiting = pods
        .iter()
        .filter(|pod| !pod["spec"]["nodeName"].is_string());
    let smallest = waiting.map(|pod| cpu(pod)).min();
    end.at("/nodes").find_map(|node| {
        let name = &node["metadata"]["name"];
        let here: Vec<_> = pods
            .iter()
            .filter(|pod| pod["spec"]["nodeName"] == *name)
            .collect();
        let used: u64 = here.iter().map(|pod| cpu(pod)).sum();
        let most = node["status"]["allocatable"]["pods"]
            .as_str()
            .unwrap_or_default();
        let most: usize = most.parse().unwrap_or_default();
        if used > 1000 || here.len() > most {
            return Some(format!("{name} has {} pods of {used}m", here.len()));
        }
        let tainted = node["spec"]["taints"]
            .as_array()
            .is_some_and(|taints| !taints.is_empty());
        let open = node["spec"]["unschedulable"] != true && !tainted && here.len() < most;
        let fits = smallest.is_some_and(|smallest| smallest <= 1000 - used);
        (open && fits).then(|| format!("{name} has room for a pod that waits"))
    })
}
