//! Services: who answers behind them, and where.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Judgement, ailing, many, name, same_namespace};
use crate::explain::{Facts, Verdict, words::last_seen};

/// The label that leads from a slice to its service.
const SERVICE: &str = "kubernetes.io/service-name";
/// The reason with which the proxy tells of an address that it could not listen on.
const NOT_SERVED: &str = "AddressNotServed";
/// It tries again, and tells again, far more often than this; what is older was mended.
const RECENT: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn judge(facts: &Facts, service: &Value) -> Judgement {
    let mut judgement = Judgement::new(&[]);
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" || is_servers_own(service) {
        return judgement;
    }
    for (verdict, message) in unserved(&facts.events, facts.now) {
        judgement.say(verdict, message);
    }
    if spec["type"] == "LoadBalancer" && service["status"]["loadBalancer"]["ingress"][0].is_null() {
        judgement.say(
            Verdict::OnItsWay,
            "no load balancer has given it an address",
        );
    }
    if !facts.may_see("EndpointSlice") {
        let why = "who answers behind it cannot be told: you may not read EndpointSlices";
        judgement.say(Verdict::Well, why);
        return judgement;
    }
    let (ready, unready) = endpoints(service, &facts.around);
    if ready == 0 && !is_set_aside(service) {
        nobody(facts, service, unready, &mut judgement);
    }
    judgement
}

/// What the proxy has said of late about addresses that it could not listen on. Where it knows a
/// way round it does not warn.
fn unserved(events: &[Event], now: Timestamp) -> BTreeSet<(Verdict, String)> {
    let weigh = |event: &Event| match event.type_.as_deref() {
        Some("Normal") => Verdict::Well,
        _ => Verdict::Troubled,
    };
    let recent = |event: &&Event| {
        let last = last_seen(event);
        last.is_none_or(|last| now.duration_since(last) <= RECENT)
    };
    events
        .iter()
        .filter(|event| event.reason.as_deref() == Some(NOT_SERVED))
        .filter(recent)
        .filter_map(|event| Some((weigh(event), event.message.clone()?)))
        .collect()
}

/// Whether it is the API server's own: whoever reads this has been answered, and pods are told
/// where.
fn is_servers_own(service: &Value) -> bool {
    service["metadata"]["namespace"] == "default"
        && name(service) == "kubernetes"
        && service["spec"]["selector"].is_null()
}

/// Whether it leads to the pods of a service that may sleep: nobody behind it is no trouble, because
/// nobody but resolvers knows it.
fn is_set_aside(service: &Value) -> bool {
    service["metadata"]["labels"]["idle.neaptide.dev/private"] == "true"
}

/// How many addresses are ready behind it, and how many are not.
fn endpoints(service: &Value, around: &[Value]) -> (usize, usize) {
    let slices = around.iter().filter(|one| one["kind"] == "EndpointSlice");
    let own = slices.filter(|slice| {
        let label = &slice["metadata"]["labels"][SERVICE];
        same_namespace(slice, service) && *label == name(service)
    });
    let all: Vec<_> = own
        .filter_map(|slice| slice["endpoints"].as_array())
        .flatten()
        .collect();
    let ready = |one: &&&Value| one["conditions"]["ready"] != false;
    let ready = all.iter().filter(ready).count();
    (ready, all.len() - ready)
}

fn nobody(facts: &Facts, service: &Value, unready: usize, judgement: &mut Judgement) {
    let selector = service["spec"]["selector"].as_object();
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else {
        let why = "it has no selector, and nobody has written endpoints for it";
        judgement.say(Verdict::Troubled, why);
        return;
    };
    let labels: Vec<_> = selector
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let labels = labels.join(",");
    let chosen = |pod: &&Value| {
        let own = &pod["metadata"]["labels"];
        pod["kind"] == "Pod"
            && same_namespace(pod, service)
            && selector.iter().all(|(key, value)| own[key] == *value)
    };
    let pods: Vec<_> = facts.around.iter().filter(chosen).collect();
    if pods.is_empty() && !facts.may_see("Pod") {
        let why = format!(
            "nobody answers behind it; whether there are pods with the labels {labels} cannot be told: you may not read Pods"
        );
        judgement.say(Verdict::Troubled, why);
        return;
    }
    if pods.is_empty() {
        let why = format!("nobody answers behind it: no pod has the labels {labels}");
        judgement.say(Verdict::Troubled, why);
        judgement.advise("Start pods with these labels, or correct the selector.");
        return;
    }
    let unready = unready.max(pods.len());
    let pods_match = many(unready as i64, "pod");
    let why =
        format!("nobody answers behind it: of {pods_match} with the labels {labels} none is ready");
    ailing(facts, &pods, judgement);
    judgement.say(Verdict::OnItsWay, why);
}
