//! Rows of nodes, namespaces, quotas, leases, priority classes and runtime classes.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, NONE, flag, joined, list, number, text, text_or};

const UNKNOWN: &str = "<unknown>";
const ROLE_LABEL: &str = "node-role.kubernetes.io/";

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let info = |field: &str| text_or(object, &format!("/status/nodeInfo/{field}"), UNKNOWN).into();
    vec![
        read::name(object),
        node_status(object).into(),
        roles(object).into(),
        read::age(object, now),
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        address(object, "InternalIP").into(),
        address(object, "ExternalIP").into(),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn node_status(object: &Value) -> String {
    let ready = match read::condition(object, "Ready") {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = if flag(object, "/spec/unschedulable") {
        ",SchedulingDisabled"
    } else {
        ""
    };
    format!("{ready}{closed}")
}

fn roles(object: &Value) -> String {
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_LABEL) {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    joined(roles)
}

fn address<'a>(object: &'a Value, kind: &str) -> &'a str {
    list(object, "/status/addresses")
        .iter()
        .find(|address| address["type"] == kind)
        .map_or(NONE, |address| text(address, "/address"))
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase = text(object, "/status/phase").into();
    vec![read::name(object), phase, read::age(object, now)]
}

/// Each resource as `name: used/hard`, limits apart from requests.
pub(super) fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in hard.into_iter().flatten() {
        let used = object.pointer("/status/used").map(|used| &used[name]);
        let used = read::either(used).unwrap_or_else(|| "0".into());
        let hard = read::either(Some(hard)).unwrap_or_default();
        let side = if name.starts_with("limits.") {
            &mut limits
        } else {
            &mut requests
        };
        side.push(format!("{name}: {used}/{hard}"));
    }
    vec![
        read::name(object),
        requests.join(", ").into(),
        limits.join(", ").into(),
        read::age(object, now),
    ]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    let holder = text(object, "/spec/holderIdentity").into();
    vec![read::name(object), holder, read::age(object, now)]
}

pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        read::name(object),
        number(object, "/value").into(),
        flag(object, "/globalDefault").into(),
        read::age(object, now),
        text_or(object, "/preemptionPolicy", "PreemptLowerPriority").into(),
    ]
}

pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let handler = text(object, "/handler").into();
    vec![read::name(object), handler, read::age(object, now)]
}
