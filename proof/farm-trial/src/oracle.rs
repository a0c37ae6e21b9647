//! What no run may show, whatever struck it: a worker that is stopped with a running action before the bound
//! of its drain.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use neap_pocket::store::{Change, Event};
use serde_json::Value;

use crate::{
    processes::NAMESPACE,
    scheduler::{Action, ActionLog},
};

const PODS: &str = "/pods";
const POOLS: &str = "buildbarn.io/buildbarnworkers";
/// How long after the scheduler has lost its drains a worker may still be stopped that was released before:
/// the write that lowers the replicas may be late, and so may the controller that deletes the pod.
const RELEASED_BEFORE: SignedDuration = SignedDuration::from_secs(60);

/// The pods that were asked to stop with a running action before their bound.
pub fn problems(history: &[Arc<Event>], log: &ActionLog) -> Vec<String> {
    let mut deadlines: BTreeMap<String, Option<Timestamp>> = BTreeMap::new();
    let mut stopped: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut problems = Vec::new();
    for event in history {
        let Some((NAMESPACE, name)) = event.path.split_once('/') else {
            continue;
        };
        let object = event.object.value();
        match &*event.resource {
            POOLS => deadlines.extend(drains(&object)),
            PODS if object["metadata"]["labels"]["app"] == "worker" => {
                let ends = !object["metadata"]["deletionTimestamp"].is_null()
                    || event.change == Change::Deleted;
                if !ends || stopped.contains_key(name) {
                    continue;
                }
                stopped.insert(name.to_owned(), event.at);
                let deadline = deadlines.get(name).copied().flatten();
                if let Some(action) = interrupted(log, name, event.at)
                    && deadline.is_none_or(|deadline| event.at < deadline)
                    && !was_released(log, action, event.at)
                {
                    problems.push(format!(
                        "{name} was stopped at {} with an action that began at {} and ended at {}; the \
                         bound of its drain: {deadline:?}",
                        event.at, action.begin, action.end
                    ));
                }
            }
            _ => {}
        }
    }
    problems
}

/// The drains of a pool by their pods, with the bound of each.
fn drains(pool: &Value) -> Vec<(String, Option<Timestamp>)> {
    let drains = pool["status"]["drains"].as_array().into_iter().flatten();
    let drains = drains.filter_map(|drain| {
        let pod = drain["pattern"]["pod"].as_str()?.to_owned();
        let deadline = drain["deadline"].as_str()?.parse().ok();
        Some((pod, deadline))
    });
    drains.collect()
}

/// The action that a worker ran at this time. One that would begin then does not: the worker ends.
fn interrupted<'a>(log: &'a ActionLog, pod: &str, at: Timestamp) -> Option<&'a Action> {
    let mut actions = log.actions.iter();
    actions.find(|action| action.pod == pod && action.begin < at && at < action.end)
}

/// Whether the worker was drained and idle, and got the action because the scheduler lost the drain just
/// before its pod was stopped. Nobody can prevent that, and the pod finishes the action.
fn was_released(log: &ActionLog, action: &Action, at: Timestamp) -> bool {
    log.losses.iter().any(|loss| {
        loss.idle.contains(&action.pod)
            && loss.at <= action.begin
            && at.duration_since(loss.at) <= RELEASED_BEFORE
    })
}
