//! Deployments and StatefulSets.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use neap_kit::apply::DesiredObject;
use serde_json::{Value, json};

use super::{
    ConfigSource, ObjectContext, base, desired,
    pod::{
        PodParts, access_volumes, add_probes, container, environment, nonroot, restrict, template,
    },
    selector,
};
use crate::{
    api::{BuildbarnStorageSpec, BuildbarnWorkerSpec, ports},
    farm::{Component, ComponentKind, ComponentSpec},
    platform::DEFAULT_RUNNER_IMAGE,
};

const INIT_IMAGE: &str = "busybox:1.31.1-uclibc";
const RUNNER_INSTALLER_IMAGE: &str =
    "ghcr.io/buildbarn/bb-runner-installer:20260527T162223Z-c48dcda";
/// The user of runners, and so of actions.
const RUNNER_USER: i64 = 65_534;
/// How much longer a worker may take than its longest action, to upload outputs.
const UPLOAD_GRACE_SECONDS: i64 = 60;
/// How long a shard may take to write its state and its blobs.
const STORAGE_GRACE_SECONDS: i64 = 300;
/// Ends when the worker of the pod has no action any more: each has a folder here until its outputs are
/// uploaded. Without this the runner would end between the request for an action and its start. An action
/// that the worker accepted just before has no folder yet, so the folder has to be empty for some seconds.
const WAIT_FOR_ACTIONS: &str = "\
    left=3; while [ $left -gt 0 ]; do \
    if [ -n \"$(ls -A /worker/build 2>/dev/null)\" ]; then left=3; else left=$((left-1)); fi; \
    sleep 1; done";
/// After this time without progress a Deployment reports that it does not progress.
pub(crate) const PROGRESS_DEADLINE_SECONDS: i64 = 600;

pub(super) fn workload(
    component: &Component,
    config: &ConfigSource,
    context: &ObjectContext,
) -> DesiredObject {
    let options = component.pod().cloned().unwrap_or_default();
    let grace = options.termination_grace_period_seconds;
    let parts = match &component.spec {
        ComponentSpec::Storage(spec) => storage(component, spec, config, grace),
        ComponentSpec::Worker(spec) => worker(component, spec, config, context, grace),
        _ => stateless(component, config, grace),
    };
    let mut object = base(component, component.name());
    object["metadata"]["annotations"] = json!({});
    object["spec"] = json!({
        "replicas": component.replicas(),
        "selector": {"matchLabels": selector(component)},
        "template": template(component, config, parts),
    });
    let spec = &mut object["spec"];
    if let ComponentSpec::Storage(storage) = &component.spec {
        spec["serviceName"] = component.name().into();
        spec["podManagementPolicy"] = "Parallel".into();
        spec["updateStrategy"] = options
            .update_strategy
            .unwrap_or_else(|| json!({"type": "RollingUpdate"}));
        spec["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        spec["volumeClaimTemplates"] = claims(storage).into();
        return desired::<StatefulSet>(object);
    }
    let default = match component.kind {
        // Two schedulers would have separate queues.
        ComponentKind::Scheduler => json!({"type": "Recreate"}),
        _ => json!({"type": "RollingUpdate"}),
    };
    spec["strategy"] = options.update_strategy.unwrap_or(default);
    spec["progressDeadlineSeconds"] = PROGRESS_DEADLINE_SECONDS.into();
    desired::<Deployment>(object)
}

fn stateless(component: &Component, config: &ConfigSource, grace: Option<i64>) -> PodParts {
    let (name, named_ports): (_, &[_]) = match component.kind {
        ComponentKind::Scheduler => (
            "scheduler",
            &[
                ("client-grpc", ports::SCHEDULER_CLIENT),
                ("worker-grpc", ports::SCHEDULER_WORKER),
                ("queue-grpc", ports::BUILD_QUEUE_STATE),
                ("http", ports::SCHEDULER_HTTP),
            ],
        ),
        ComponentKind::Frontend => ("storage", &[("grpc", ports::FRONTEND)]),
        _ => ("browser", &[("http", ports::BROWSER)]),
    };
    let mut main = container(component, name, &config.file, named_ports);
    restrict(&mut main);
    let volumes = access_volumes(component, &mut main);
    PodParts {
        containers: vec![main],
        init_containers: Vec::new(),
        volumes,
        grace_seconds: grace.unwrap_or(30),
        security_context: nonroot(),
    }
}

fn storage(
    component: &Component,
    spec: &BuildbarnStorageSpec,
    config: &ConfigSource,
    grace: Option<i64>,
) -> PodParts {
    let mut main = container(
        component,
        "storage",
        &config.file,
        &[("grpc", ports::STORAGE)],
    );
    restrict(&mut main);
    let names = volume_names(spec);
    let mounts: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "mountPath": format!("/storage-{name}")}))
        .collect();
    if let Some(all) = main["volumeMounts"].as_array_mut() {
        all.extend(mounts.clone());
    }
    let folders: Vec<_> = names
        .iter()
        .map(|name| format!("/storage-{name}/persistent_state"))
        .collect();
    let mut init = json!({
        "name": "volume-init",
        "image": INIT_IMAGE,
        "command": ["sh", "-c", format!("mkdir -m 0700 -p {}", folders.join(" "))],
        "volumeMounts": mounts,
    });
    restrict(&mut init);
    PodParts {
        containers: vec![main],
        init_containers: vec![init],
        volumes: Vec::new(),
        grace_seconds: grace.unwrap_or(STORAGE_GRACE_SECONDS),
        security_context: nonroot(),
    }
}

/// The volumes of a shard that are named after stores.
pub fn volume_names(spec: &BuildbarnStorageSpec) -> Vec<String> {
    let claims = claims(spec);
    let names = claims
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str());
    names
        .filter(|name| ["cas", "ac", "fsac"].contains(name))
        .map(str::to_owned)
        .collect()
}

/// The volume claims of a shard.
pub fn claims(spec: &BuildbarnStorageSpec) -> Vec<Value> {
    if !spec.volume_claim_templates.is_empty() {
        return spec.volume_claim_templates.clone();
    }
    let claim = |name: &str, size: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
            },
        })
    };
    vec![
        claim("cas", "33Gi"),
        claim("ac", "1Gi"),
        claim("fsac", "1Gi"),
    ]
}

fn worker(
    component: &Component,
    spec: &BuildbarnWorkerSpec,
    config: &ConfigSource,
    context: &ObjectContext,
    grace: Option<i64>,
) -> PodParts {
    let mut main = container(component, "worker", &config.file, &[]);
    // The worker creates and deletes the files of all actions, so it has more rights than they have.
    main["securityContext"] = json!({"allowPrivilegeEscalation": false, "runAsUser": 0});
    if let Some(mounts) = main["volumeMounts"].as_array_mut() {
        mounts.push(json!({"name": "worker", "mountPath": "/worker"}));
    }
    let init = |name: &str, image: &str| json!({"name": name, "image": image});
    let installer = spec.runner_installer_image.as_deref();
    let mut installer = init(
        "bb-runner-installer",
        installer.unwrap_or(RUNNER_INSTALLER_IMAGE),
    );
    installer["volumeMounts"] = json!([{"name": "empty", "mountPath": "/bb/"}]);
    let mut folders = init("volume-init", INIT_IMAGE);
    let command =
        "mkdir -pm 0777 /worker/build && mkdir -pm 0700 /worker/cache && chmod 0777 /worker";
    folders["command"] = json!(["sh", "-c", command]);
    folders["volumeMounts"] = json!([{"name": "worker", "mountPath": "/worker"}]);
    // The longest action, and not less, whatever the spec says.
    let needed = context.longest_action_seconds + UPLOAD_GRACE_SECONDS;
    PodParts {
        containers: vec![main, runner(spec)],
        init_containers: vec![installer, folders],
        volumes: vec![
            json!({"name": "empty", "emptyDir": {}}),
            json!({"name": "worker", "emptyDir": {}}),
        ],
        grace_seconds: grace.unwrap_or(needed).max(needed),
        security_context: json!({"seccompProfile": {"type": "RuntimeDefault"}}),
    }
}

fn runner(spec: &BuildbarnWorkerSpec) -> Value {
    let instance = spec.instance_name();
    let image = spec.runner_image.as_deref().unwrap_or(DEFAULT_RUNNER_IMAGE);
    let mut runner = json!({
        "name": "runner",
        "image": image,
        "command": ["/bb/bb_runner", format!("/config/runner-{instance}.jsonnet")],
        "env": environment(),
        "ports": [{
            "name": "runner-diag",
            "containerPort": ports::RUNNER_DIAGNOSTICS,
            "protocol": "TCP",
        }],
        "securityContext": {
            "runAsUser": RUNNER_USER,
            "runAsNonRoot": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        },
        // Both containers are stopped at the same time, and the worker needs the runner until its last action
        // has ended. An image without a shell has only the runner's own graceful stop.
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", WAIT_FOR_ACTIONS]}}},
        "volumeMounts": [
            {"name": "configs", "mountPath": "/config/", "readOnly": true},
            {"name": "worker", "mountPath": "/worker"},
            {"name": "empty", "mountPath": "/bb", "readOnly": true},
        ],
    });
    // A user's own configuration may have no diagnostics server in the runner, as upstream's has none.
    if spec.config_map_name.is_none() {
        add_probes(&mut runner, ports::RUNNER_DIAGNOSTICS);
    }
    if let Some(resources) = &spec.runner_resources {
        runner["resources"] = resources.clone();
    }
    runner
}
