//! Disruption budgets and network policies.

use k8s_openapi::api::{networking::v1::NetworkPolicy, policy::v1::PodDisruptionBudget};
use neap_kit::apply::DesiredObject;
use serde_json::{Value, json};

use super::{ObjectContext, base, desired, selector, side_name};
use crate::{
    api::{APP_LABEL, FARM_LABEL, MANAGED_BY_LABEL, MANAGER, ports},
    farm::{Component, ComponentKind},
};

/// The ports of DNS servers. Policies see the port behind the Service, which is 5353 on OpenShift.
const DNS_PORTS: [(u16, &str); 4] = [(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")];

/// One pod at a time. The scheduler has one pod, so a budget would only block the maintenance of nodes.
pub(super) fn disruption_budget(component: &Component) -> Option<DesiredObject> {
    if component.kind == ComponentKind::Scheduler {
        return None;
    }
    let mut object = base(component, &side_name(component));
    object["spec"] = json!({
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector(component)},
    });
    Some(desired::<PodDisruptionBudget>(object))
}

/// Who may connect to which port. `TerminateWorkers` has no authorizer, so only the operator reaches the
/// port of the build queue.
pub(super) fn policy(component: &Component, context: &ObjectContext) -> DesiredObject {
    let from = |apps: &[&str]| json!([{"podSelector": pods_of(component, apps)}]);
    let diagnostics = rule(&[ports::DIAGNOSTICS], &Value::Null);
    let clients = ["frontend", "worker", "scheduler", "browser"];
    let ingress = match component.kind {
        ComponentKind::Storage => vec![rule(&[ports::STORAGE], &from(&clients)), diagnostics],
        ComponentKind::Scheduler => {
            let operator = json!([{"namespaceSelector": {"matchLabels": {
                "kubernetes.io/metadata.name": context.operator_namespace,
            }}}]);
            vec![
                rule(&[ports::SCHEDULER_CLIENT], &from(&["frontend"])),
                rule(&[ports::SCHEDULER_WORKER], &from(&["worker"])),
                rule(&[ports::BUILD_QUEUE_STATE], &operator),
                rule(&[ports::SCHEDULER_HTTP], &Value::Null),
                diagnostics,
            ]
        }
        ComponentKind::Worker => {
            vec![rule(
                &[ports::DIAGNOSTICS, ports::RUNNER_DIAGNOSTICS],
                &Value::Null,
            )]
        }
        ComponentKind::Frontend => vec![rule(&[ports::FRONTEND], &Value::Null), diagnostics],
        ComponentKind::Browser => vec![rule(&[ports::BROWSER], &Value::Null), diagnostics],
    };
    let mut object = base(component, &side_name(component));
    object["spec"] = json!({
        "podSelector": {"matchLabels": selector(component)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    });
    if component.worker().is_some_and(|spec| !spec.allow_egress) {
        object["spec"]["policyTypes"] = json!(["Ingress", "Egress"]);
        object["spec"]["egress"] = egress(component);
    }
    desired::<NetworkPolicy>(object)
}

/// Actions share the network of their worker, so what it does not need is closed for both.
fn egress(component: &Component) -> Value {
    let to = |port: u16, app: &str| {
        json!({
            "to": [{"podSelector": pods_of(component, &[app])}],
            "ports": [{"port": port, "protocol": "TCP"}],
        })
    };
    // Where DNS is differs: in kube-system, in a namespace of OpenShift behind port 5353, or on the node, which
    // no selector matches.
    let names = DNS_PORTS.map(|(port, protocol)| json!({"port": port, "protocol": protocol}));
    json!([
        to(ports::STORAGE, "storage"),
        to(ports::SCHEDULER_WORKER, "scheduler"),
        {"ports": names},
    ])
}

fn rule(ports: &[u16], from: &Value) -> Value {
    let ports: Vec<_> = ports
        .iter()
        .map(|port| json!({"port": port, "protocol": "TCP"}))
        .collect();
    let mut rule = json!({"ports": ports});
    if !from.is_null() {
        rule["from"] = from.clone();
    }
    rule
}

fn pods_of(component: &Component, apps: &[&str]) -> Value {
    let mut labels = json!({MANAGED_BY_LABEL: MANAGER});
    let mut expressions = vec![json!({"key": APP_LABEL, "operator": "In", "values": apps})];
    if component.farm().is_empty() {
        // Pods of other farms of the namespace have the label.
        expressions.push(json!({"key": FARM_LABEL, "operator": "DoesNotExist"}));
    } else {
        labels[FARM_LABEL] = component.farm().into();
    }
    json!({"matchLabels": labels, "matchExpressions": expressions})
}
