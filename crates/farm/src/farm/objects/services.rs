//! Services and Ingresses.

use k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};
use neap_kit::apply::DesiredObject;
use serde_json::{Value, json};

use super::{base, desired, selector, side_name};
use crate::{
    api::{IngressOptions, ports},
    farm::{Component, ComponentKind, ComponentSpec},
};

/// Whether clients outside of the cluster reach the Service of a component.
pub fn is_exposed(component: &Component) -> bool {
    let service_type = match &component.spec {
        ComponentSpec::Scheduler(spec) => spec.service_type.as_deref(),
        ComponentSpec::Frontend(spec) => spec.service_type.as_deref(),
        ComponentSpec::Browser(spec) => spec.service_type.as_deref(),
        ComponentSpec::Storage(_) | ComponentSpec::Worker(_) => None,
    };
    ["LoadBalancer", "NodePort"].contains(&service_type.unwrap_or_default())
}

/// The name of the Service by which the build queue of a scheduler is reached.
pub fn queue_service_name(scheduler: &Component) -> String {
    if is_exposed(scheduler) {
        side_name(scheduler)
    } else {
        scheduler.name().to_owned()
    }
}

/// The ports of a component that only the cluster reaches: drains, metrics and profiles, of which none asks its
/// caller who that is.
fn inner_ports(component: &Component) -> Vec<(&'static str, u16)> {
    let queue = component.scheduler();
    let queue = queue.map(|_| ("queue-grpc", ports::BUILD_QUEUE_STATE));
    let metrics = metrics_ports(component);
    queue.into_iter().chain(metrics).collect()
}

/// The ports with metrics. A runner with the user's own configuration may have none.
pub(super) fn metrics_ports(component: &Component) -> Vec<(&'static str, u16)> {
    let runner = component.worker().filter(|it| it.config_map_name.is_none());
    let runner = runner.map(|_| ("runner-diag", ports::RUNNER_DIAGNOSTICS));
    let diagnostics = ("diagnostics", ports::DIAGNOSTICS);
    [diagnostics].into_iter().chain(runner).collect()
}

/// The Service with the inner ports, of a component whose own Service is reached from outside, and of a pool
/// if it is `monitored`: a pool has no Service of its own.
pub(super) fn inner_service(component: &Component, monitored: bool) -> Option<DesiredObject> {
    let is_pool = component.kind == ComponentKind::Worker;
    let is_wanted = is_exposed(component) || is_pool && monitored;
    if !is_wanted {
        return None;
    }
    let mut object = base(component, &side_name(component));
    object["spec"] = json!({
        "type": "ClusterIP",
        "selector": selector(component),
        "ports": service_ports(&inner_ports(component)),
    });
    if is_pool {
        object["spec"]["clusterIP"] = "None".into();
    }
    Some(desired::<Service>(object))
}

pub(super) fn service(component: &Component) -> Option<DesiredObject> {
    let (kind, mut named): (Option<&str>, Vec<_>) = match &component.spec {
        ComponentSpec::Worker(_) => return None,
        ComponentSpec::Storage(_) => (None, vec![("grpc", ports::STORAGE)]),
        ComponentSpec::Scheduler(spec) => (
            spec.service_type.as_deref(),
            vec![
                ("client-grpc", ports::SCHEDULER_CLIENT),
                ("worker-grpc", ports::SCHEDULER_WORKER),
                ("queue-grpc", ports::BUILD_QUEUE_STATE),
                ("http", ports::SCHEDULER_HTTP),
            ],
        ),
        ComponentSpec::Frontend(spec) => (
            spec.service_type.as_deref(),
            vec![("grpc", ports::FRONTEND)],
        ),
        ComponentSpec::Browser(spec) => {
            (spec.service_type.as_deref(), vec![("http", ports::BROWSER)])
        }
    };
    let kind = kind.unwrap_or("ClusterIP");
    named.push(("diagnostics", ports::DIAGNOSTICS));
    if is_exposed(component) {
        let inner = inner_ports(component);
        named.retain(|port| !inner.contains(port));
    }
    let ports = service_ports(&named);
    let mut object = base(component, component.name());
    object["spec"] = json!({"type": kind, "selector": selector(component), "ports": ports});
    if component.kind == ComponentKind::Storage {
        object["spec"]["clusterIP"] = "None".into();
        // Clients find a shard before it is ready, and wait for it there.
        object["spec"]["publishNotReadyAddresses"] = true.into();
    }
    Some(desired::<Service>(object))
}

fn service_ports(named: &[(&str, u16)]) -> Value {
    let ports = named.iter().map(
        |(name, port)| json!({"name": name, "port": port, "targetPort": port, "protocol": "TCP"}),
    );
    ports.collect()
}

pub(super) fn ingress(component: &Component) -> Option<DesiredObject> {
    let (options, default_host) = match &component.spec {
        ComponentSpec::Scheduler(spec) => {
            let host = format!("bb-scheduler.{}", component.namespace());
            (spec.ingress.as_ref(), Some(host))
        }
        ComponentSpec::Browser(spec) => (spec.ingress.as_ref(), spec.ingress_host.clone()),
        _ => return None,
    };
    let none = IngressOptions::default();
    let options = options.unwrap_or(&none);
    let host = options.host.clone().or(default_host)?;
    if options.enabled == Some(false) || host.is_empty() {
        return None;
    }
    let mut object = base(component, component.name());
    if !options.annotations.is_empty() {
        object["metadata"]["annotations"] = json!(options.annotations);
    }
    let backend = json!({"service": {"name": component.name(), "port": {"name": "http"}}});
    object["spec"] = json!({"rules": [{
        "host": host,
        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
    }]});
    if let Some(class) = &options.class_name {
        object["spec"]["ingressClassName"] = Value::from(class.as_str());
    }
    if let Some(secret) = &options.tls_secret_name {
        object["spec"]["tls"] = json!([{"hosts": [host], "secretName": secret}]);
    }
    Some(desired::<Ingress>(object))
}
