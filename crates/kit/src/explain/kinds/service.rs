//! Services: who answers behind them, and where.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Judgement, ailing, many, name, same_namespace};
use crate::explain::Verdict;

/// The label that leads from a slice to its service.
const SERVICE: &str = "kubernetes.io/service-name";
/// The reason with which the proxy tells of an address that it could not listen on.
const NOT_SERVED: &str = "AddressNotServed";

pub(super) fn judge(
    service: &Value,
    around: &[Value],
    events: &[Event],
    now: Timestamp,
) -> Judgement {
    let mut judgement = Judgement::new(&[]);
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return judgement;
    }
    let told = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some(NOT_SERVED));
    let told: std::collections::BTreeSet<_> =
        told.filter_map(|event| event.message.clone()).collect();
    for message in told {
        judgement.say(Verdict::Troubled, message);
    }
    if spec["type"] == "LoadBalancer" && service["status"]["loadBalancer"]["ingress"][0].is_null() {
        judgement.say(
            Verdict::OnItsWay,
            "no load balancer has given it an address",
        );
    }
    let (ready, unready) = endpoints(service, around);
    if ready == 0 {
        nobody(service, around, unready, now, &mut judgement);
    }
    judgement
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

fn nobody(
    service: &Value,
    around: &[Value],
    unready: usize,
    now: Timestamp,
    judgement: &mut Judgement,
) {
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
    let pods: Vec<_> = around.iter().filter(chosen).collect();
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
    judgement.say(Verdict::OnItsWay, why);
    ailing(&pods, now, judgement);
}
