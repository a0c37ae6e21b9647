//! Services: their endpoints and addresses.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Assessment, assess_pods, count_of, name, same_namespace};
use crate::explain::{Facts, Verdict, text::last_seen};

/// The label of an EndpointSlice with the name of its Service.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The reason of Events with which the proxy reports an address that it could not listen on.
const NOT_SERVED: &str = "AddressNotServed";
/// The age from which such an Event is ignored: the proxy retries and reports more often than this, so
/// an older failure has been resolved.
const MAX_EVENT_AGE: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn assess(facts: &Facts, service: &Value) -> Assessment {
    let mut assessment = Assessment::new(&[]);
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" || is_api_server(service) {
        return assessment;
    }
    for (verdict, message) in unserved_addresses(&facts.events, facts.now) {
        assessment.add_reason(verdict, message);
    }
    if spec["type"] == "LoadBalancer" && service["status"]["loadBalancer"]["ingress"][0].is_null() {
        assessment.add_reason(
            Verdict::Progressing,
            "no load balancer has assigned an address to it",
        );
    }
    if !facts.can_read("EndpointSlice") {
        let why = "its endpoints are unknown: you may not read EndpointSlices";
        assessment.add_reason(Verdict::Healthy, why);
        return assessment;
    }
    let (ready, unready) = endpoints(service, &facts.related);
    if ready == 0 && !is_private(service) {
        no_ready_endpoints(facts, service, unready, &mut assessment);
    }
    assessment
}

/// The recent Events of the proxy about addresses that it could not listen on. They are Normal if there
/// is a workaround, and Warning otherwise.
fn unserved_addresses(events: &[Event], now: Timestamp) -> BTreeSet<(Verdict, String)> {
    let verdict = |event: &Event| match event.type_.as_deref() {
        Some("Normal") => Verdict::Healthy,
        _ => Verdict::Degraded,
    };
    let recent = |event: &&Event| {
        let last = last_seen(event);
        last.is_none_or(|last| now.duration_since(last) <= MAX_EVENT_AGE)
    };
    events
        .iter()
        .filter(|event| event.reason.as_deref() == Some(NOT_SERVED))
        .filter(recent)
        .filter_map(|event| Some((verdict(event), event.message.clone()?)))
        .collect()
}

/// Whether it is the Service of the API server. Its endpoints need no check: the API server has just
/// answered.
fn is_api_server(service: &Value) -> bool {
    service["metadata"]["namespace"] == "default"
        && name(service) == "kubernetes"
        && service["spec"]["selector"].is_null()
}

/// Whether it is the private Service of a service that may sleep. It may have no endpoints, because only
/// resolvers use it.
fn is_private(service: &Value) -> bool {
    service["metadata"]["labels"]["idle.neaptide.dev/private"] == "true"
}

/// The number of ready endpoints and of others.
fn endpoints(service: &Value, related: &[Value]) -> (usize, usize) {
    let slices = related.iter().filter(|one| one["kind"] == "EndpointSlice");
    let own = slices.filter(|slice| {
        let label = &slice["metadata"]["labels"][SERVICE_NAME_LABEL];
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

fn no_ready_endpoints(facts: &Facts, service: &Value, unready: usize, assessment: &mut Assessment) {
    let selector = service["spec"]["selector"].as_object();
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else {
        let why = "it has no selector and no endpoints";
        assessment.add_reason(Verdict::Degraded, why);
        return;
    };
    let labels: Vec<_> = selector
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let labels = labels.join(",");
    let selected = |pod: &&Value| {
        let own = &pod["metadata"]["labels"];
        pod["kind"] == "Pod"
            && same_namespace(pod, service)
            && selector.iter().all(|(key, value)| own[key] == *value)
    };
    let pods: Vec<_> = facts.related.iter().filter(selected).collect();
    if pods.is_empty() && !facts.can_read("Pod") {
        let why = format!(
            "it has no ready endpoints; whether pods have the labels {labels} is unknown: you may not read Pods"
        );
        assessment.add_reason(Verdict::Degraded, why);
        return;
    }
    if pods.is_empty() {
        let why = format!("it has no ready endpoints: no pod has the labels {labels}");
        assessment.add_reason(Verdict::Degraded, why);
        assessment.add_advice("Start pods with these labels, or correct the selector.");
        return;
    }
    let unready = unready.max(pods.len());
    let matching = count_of(unready as i64, "pod");
    let why =
        format!("it has no ready endpoints: of {matching} with the labels {labels} none is ready");
    assess_pods(facts, &pods, assessment);
    assessment.add_reason(Verdict::Progressing, why);
}
