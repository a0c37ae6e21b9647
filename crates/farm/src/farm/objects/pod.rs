//! The pods of a component.

use serde_json::{Map, Value, json};

use super::{ConfigSource, object_labels, selector, side_name};
use crate::{
    api::ports,
    configuration::{TLS_FOLDER, TRUST_FOLDER},
    farm::Component,
};

/// The user of the programs that need no rights.
pub(super) const NONROOT: i64 = 65_532;

/// The template of the pods, around their containers.
pub(super) struct PodParts {
    pub(super) containers: Vec<Value>,
    pub(super) init_containers: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    pub(super) grace_seconds: i64,
    pub(super) security_context: Value,
}

pub(super) fn template(component: &Component, config: &ConfigSource, parts: PodParts) -> Value {
    let options = component.pod().cloned().unwrap_or_default();
    let mut labels = options.labels.clone();
    labels.extend(object_labels(component));
    let mut annotations = options.annotations.clone();
    annotations.insert("buildbarn.io/configuration".to_owned(), config.hash.clone());
    let trust = config.trust.clone();
    annotations.extend(trust.map(|hash| ("buildbarn.io/trust".to_owned(), hash)));
    let mut volumes = vec![json!({"name": "configs", "configMap": {"name": config.config_map}})];
    volumes.extend(parts.volumes);
    volumes.extend(options.volumes);
    let account = options
        .service_account_name
        .unwrap_or_else(|| side_name(component));
    let spread = options.topology_spread_constraints.unwrap_or_else(|| {
        vec![json!({
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(component)},
        })]
    });
    let mut spec = json!({
        "serviceAccountName": account,
        "automountServiceAccountToken": false,
        "securityContext": options.security_context.unwrap_or(parts.security_context),
        "terminationGracePeriodSeconds": parts.grace_seconds,
        "topologySpreadConstraints": spread,
        "containers": parts.containers,
        "volumes": volumes,
    });
    let mut set = |field: &str, value: Value| {
        let empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
            || value.is_null();
        if !empty {
            spec[field] = value;
        }
    };
    set("initContainers", parts.init_containers.into());
    set("affinity", options.affinity.unwrap_or_default());
    set("priorityClassName", json!(options.priority_class_name));
    set("nodeSelector", json!(component.node_selector()));
    set("tolerations", json!(component.tolerations()));
    set("imagePullSecrets", json!(component.image_pull_secrets()));
    json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})
}

/// The main container.
pub(super) fn container(
    component: &Component,
    name: &str,
    file: &str,
    named_ports: &[(&str, u16)],
) -> Value {
    let options = component.pod().cloned().unwrap_or_default();
    let mut ports: Vec<_> = named_ports
        .iter()
        .map(|(name, port)| port_of(name, *port))
        .collect();
    ports.push(port_of("diagnostics", ports::DIAGNOSTICS));
    let mut env = environment();
    env.extend(options.env);
    let mut mounts = vec![json!({"name": "configs", "mountPath": "/config/", "readOnly": true})];
    mounts.extend(options.volume_mounts);
    let mut container = json!({
        "name": name,
        "image": component.image(),
        "args": [format!("/config/{file}")],
        "env": env,
        "ports": ports,
        "volumeMounts": mounts,
    });
    add_probes(&mut container, ports::DIAGNOSTICS);
    if let Some(resources) = component.resources() {
        container["resources"] = resources.clone();
    }
    container
}

/// What the configurations ask about the pod.
pub(super) fn environment() -> Vec<Value> {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    vec![
        field("NODE_NAME", "spec.nodeName"),
        field("POD_NAME", "metadata.name"),
        field("POD_IP", "status.podIP"),
    ]
}

fn port_of(name: &str, port: u16) -> Value {
    json!({"name": name, "containerPort": port, "protocol": "TCP"})
}

/// The diagnostics server starts when the program has started, so one path answers all three questions.
pub(super) fn add_probes(container: &mut Value, port: u16) {
    let probe = |period: i32, failures: i32| {
        json!({
            "httpGet": {"path": "/-/healthy", "port": port},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    container["startupProbe"] = probe(1, 300);
    container["readinessProbe"] = probe(5, 3);
    container["livenessProbe"] = probe(20, 6);
}

/// For programs that only compute and connect.
pub(super) fn restrict(container: &mut Value) {
    container["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    });
}

pub(super) fn nonroot() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": NONROOT,
        "runAsGroup": NONROOT,
        "fsGroup": NONROOT,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// The mounts and volumes of the certificate and of what callers are checked with.
pub(super) fn access_volumes(component: &Component, container: &mut Value) -> Vec<Value> {
    let access = component.frontend().and_then(|spec| spec.access.as_ref());
    let mut volumes = Vec::new();
    let mut mount = |name: &str, folder: &str, volume: Value| {
        if let Some(mounts) = container["volumeMounts"].as_array_mut() {
            mounts.push(json!({"name": name, "mountPath": folder, "readOnly": true}));
        }
        volumes.push(volume);
    };
    if let Some(tls) = access.and_then(|it| it.tls.as_ref()) {
        let volume = json!({"name": "tls", "secret": {"secretName": tls.secret_name}});
        mount("tls", TLS_FOLDER, volume);
    }
    if let Some((_, trust)) = component.trust() {
        let volume = json!({"name": "trust", "configMap": {"name": trust.config_map_name}});
        mount("trust", TRUST_FOLDER, volume);
    }
    volumes
}
