//! What an installed OpenShift has: definitions, nodes, machines, version and operators.

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use neap_kit::clock::Clock;
use serde_json::{Value, json};

use super::{ClusterSpec, StartedCluster, api::definition_of};

/// Kinds of OpenShift: group, version, kind, plural, whether namespaced.
const KINDS: [(&str, &str, &str, &str, bool); 11] = [
    (
        "config.openshift.io",
        "v1",
        "ClusterVersion",
        "clusterversions",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "ClusterOperator",
        "clusteroperators",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "OperatorHub",
        "operatorhubs",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "Infrastructure",
        "infrastructures",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "APIServer",
        "apiservers",
        false,
    ),
    ("operator.openshift.io", "v1", "Console", "consoles", false),
    (
        "operator.openshift.io",
        "v1",
        "IngressController",
        "ingresscontrollers",
        true,
    ),
    (
        "samples.operator.openshift.io",
        "v1",
        "Config",
        "configs",
        false,
    ),
    (
        "machine.openshift.io",
        "v1beta1",
        "Machine",
        "machines",
        true,
    ),
    (
        "machine.openshift.io",
        "v1beta1",
        "MachineSet",
        "machinesets",
        true,
    ),
    ("route.openshift.io", "v1", "Route", "routes", true),
];

/// The parts of a cluster.
const OPERATORS: [&str; 9] = [
    "authentication",
    "console",
    "dns",
    "etcd",
    "ingress",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "network",
];

const NAMESPACES: [&str; 4] = [
    "openshift-config",
    "openshift-console",
    "openshift-ingress-operator",
    "openshift-machine-api",
];

/// The delay between two attempts to write an object of a kind that was defined just now.
const DEFINED_DELAY: std::time::Duration = std::time::Duration::from_millis(50);
/// How often such an object is tried.
const DEFINED_ATTEMPTS: u32 = 60;

/// Writes the objects of a new cluster, settled or not.
pub(super) async fn fill(
    cluster: &StartedCluster,
    spec: &ClusterSpec,
    settled: bool,
    clock: Clock,
) -> Result<(), String> {
    let client = &cluster.client;
    for (group, version, kind, plural, namespaced) in KINDS {
        let mut definition = definition_of(group, version, kind, plural, namespaced);
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = columns(kind);
        put(
            client,
            clock,
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            definition,
        )
        .await?;
    }
    for name in NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        put(client, clock, "v1", "namespaces", namespace).await?;
    }
    for (api_version, plural, object) in objects(spec, settled, clock.now()) {
        put(client, clock, api_version, plural, object).await?;
    }
    for node in nodes(spec, settled, clock.now()) {
        put_node(client, clock, node).await?;
    }
    Ok(())
}

/// What lists of a kind show beside names.
fn columns(kind: &str) -> Value {
    let condition = |name: &str, kind: &str| {
        let path = format!(".status.conditions[?(@.type==\"{kind}\")].status");
        json!({"name": name, "type": "string", "jsonPath": path})
    };
    let states = [
        condition("Available", "Available"),
        condition("Progressing", "Progressing"),
    ];
    let text = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let own = match kind {
        "ClusterVersion" => vec![text(
            "Version",
            ".status.history[?(@.state==\"Completed\")].version",
        )],
        "Machine" => vec![text("Phase", ".status.phase")],
        "MachineSet" => vec![text("Desired", ".spec.replicas")],
        _ => Vec::new(),
    };
    let states = match kind {
        "ClusterVersion" => states.to_vec(),
        "ClusterOperator" => [&states[..], &[condition("Degraded", "Degraded")]].concat(),
        _ => Vec::new(),
    };
    [own, states, vec![age]].concat().into()
}

/// Reports all parts of a cluster as settled.
pub(super) async fn settle(cluster: &StartedCluster, clock: Clock) -> Result<(), String> {
    let client = &cluster.client;
    for name in OPERATORS {
        let operator = operator(name, true, clock.now());
        put(
            client,
            clock,
            "config.openshift.io/v1",
            "clusteroperators",
            operator,
        )
        .await?;
    }
    let patch = json!({"status": {"conditions": version_conditions(true, clock.now())}});
    let api = api(
        client,
        "config.openshift.io/v1",
        "ClusterVersion",
        "clusterversions",
        "",
    );
    let merged = api
        .patch("version", &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    merged.map_err(|error| error.to_string())?;
    let nodes: Api<DynamicObject> = self::api(client, "v1", "Node", "nodes", "");
    let found = nodes
        .list(&kube::api::ListParams::default().limit(500))
        .await;
    for node in found.map_err(|error| error.to_string())?.items {
        let patch = json!({"status": {"conditions": node_conditions(true, clock.now())}});
        let name = node.metadata.name.unwrap_or_default();
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let patched = nodes.patch_status(&name, &parameters, &patch).await;
        patched.map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn objects(
    spec: &ClusterSpec,
    settled: bool,
    now: Timestamp,
) -> Vec<(&'static str, &'static str, Value)> {
    let apps = format!("apps.{}", spec.domain);
    let mut objects = vec![
        (
            "config.openshift.io/v1",
            "clusterversions",
            json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "ClusterVersion",
                "metadata": {"name": "version"},
                "spec": {"clusterID": spec.id, "channel": "stable", "upstream": "https://api.example.com/graph"},
                "status": {
                    "desired": {"version": spec.version},
                    "history": [{"state": "Completed", "version": spec.version, "startedTime": now.to_string()}],
                    "conditions": version_conditions(settled, now),
                },
            }),
        ),
        (
            "config.openshift.io/v1",
            "operatorhubs",
            plain("config.openshift.io/v1", "OperatorHub", "", "cluster"),
        ),
        (
            "config.openshift.io/v1",
            "apiservers",
            plain("config.openshift.io/v1", "APIServer", "", "cluster"),
        ),
        (
            "config.openshift.io/v1",
            "infrastructures",
            json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "Infrastructure",
                "metadata": {"name": "cluster"},
                "status": {"infrastructureName": format!("{}-hive", spec.name), "platform": "Azure"},
            }),
        ),
        (
            "operator.openshift.io/v1",
            "consoles",
            plain("operator.openshift.io/v1", "Console", "", "cluster"),
        ),
        (
            "operator.openshift.io/v1",
            "ingresscontrollers",
            json!({
                "apiVersion": "operator.openshift.io/v1",
                "kind": "IngressController",
                "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
                "spec": {},
                "status": {"domain": apps},
            }),
        ),
        (
            "samples.operator.openshift.io/v1",
            "configs",
            json!({
                "apiVersion": "samples.operator.openshift.io/v1",
                "kind": "Config",
                "metadata": {"name": "cluster"},
                "spec": {"managementState": "Managed"},
            }),
        ),
        (
            "route.openshift.io/v1",
            "routes",
            json!({
                "apiVersion": "route.openshift.io/v1",
                "kind": "Route",
                "metadata": {"namespace": "openshift-console", "name": "console"},
                "spec": {"host": format!("console-openshift-console.{apps}")},
            }),
        ),
        (
            "machine.openshift.io/v1beta1",
            "machinesets",
            json!({
                "apiVersion": "machine.openshift.io/v1beta1",
                "kind": "MachineSet",
                "metadata": {"namespace": "openshift-machine-api", "name": format!("{}-worker-1", spec.name)},
                "spec": {
                    "replicas": 3,
                    "template": {"spec": {"providerSpec": {"value": {
                        "vmSize": "Standard_D4s_v3",
                        "osDisk": {"diskSizeGB": 128},
                    }}}},
                },
            }),
        ),
    ];
    let operators = OPERATORS.iter().map(|name| {
        (
            "config.openshift.io/v1",
            "clusteroperators",
            operator(name, settled, now),
        )
    });
    objects.extend(operators);
    objects.extend(machines(spec).map(|it| ("machine.openshift.io/v1beta1", "machines", it)));
    objects
}

fn plain(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {},
    })
}

fn named(spec: &ClusterSpec) -> impl Iterator<Item = (&'static str, String)> + use<'_> {
    let of = |role: &'static str| {
        (0..3).map(move |number| (role, format!("{}-{role}-{number}", spec.name)))
    };
    of("master").chain(of("worker"))
}

fn machines(spec: &ClusterSpec) -> impl Iterator<Item = Value> + use<'_> {
    named(spec).map(|(role, name)| {
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "namespace": "openshift-machine-api",
                "name": name,
                "labels": {"machine.openshift.io/cluster-api-machine-role": role},
            },
            "spec": {},
            "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": name}},
        })
    })
}

fn nodes(
    spec: &ClusterSpec,
    settled: bool,
    now: Timestamp,
) -> impl Iterator<Item = Value> + use<'_> {
    named(spec).map(move |(role, name)| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    (format!("node-role.kubernetes.io/{role}")): "",
                    "kubernetes.io/hostname": name,
                },
            },
            "spec": {},
            "status": {
                "conditions": node_conditions(settled, now),
                "nodeInfo": {
                    "kubeletVersion": "v1.33.0",
                    "osImage": "Red Hat Enterprise Linux CoreOS",
                    "architecture": "amd64",
                    "bootID": "", "machineID": "", "systemUUID": "", "kernelVersion": "",
                    "containerRuntimeVersion": "", "kubeProxyVersion": "", "operatingSystem": "linux",
                },
            },
        })
    })
}

fn node_conditions(settled: bool, now: Timestamp) -> Value {
    json!([{
        "type": "Ready",
        "status": if settled { "True" } else { "False" },
        "reason": if settled { "KubeletReady" } else { "KubeletNotReady" },
        "message": "",
        "lastHeartbeatTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }])
}

fn conditions(list: &[(&str, bool)], now: Timestamp) -> Value {
    let each = list.iter().map(|(kind, holds)| {
        json!({
            "type": kind,
            "status": if *holds { "True" } else { "False" },
            "lastTransitionTime": now.to_string(),
        })
    });
    each.collect()
}

fn version_conditions(settled: bool, now: Timestamp) -> Value {
    conditions(
        &[
            ("Available", settled),
            ("Progressing", !settled),
            ("Failing", false),
        ],
        now,
    )
}

fn operator(name: &str, settled: bool, now: Timestamp) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "conditions": conditions(
                &[("Available", settled), ("Progressing", !settled), ("Degraded", false)],
                now,
            ),
        },
    })
}

fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    plural: &str,
    namespace: &str,
) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Creates or replaces an object of the cluster. This stands in for an installer, which is no controller:
/// the emulator is the only writer of the object.
async fn put(
    client: &Client,
    clock: Clock,
    api_version: &str,
    plural: &str,
    mut object: Value,
) -> Result<(), String> {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let namespace = text("/metadata/namespace");
    if namespace.is_empty()
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("namespace");
    }
    let api = api(client, api_version, &kind, plural, &namespace);
    let mut problem = String::new();
    for _ in 0..DEFINED_ATTEMPTS {
        let desired: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        match api.create(&PostParams::default(), &desired).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let patch = Patch::Merge(&object);
                let merged = api.patch(&name, &PatchParams::default(), &patch).await;
                return merged.map(drop).map_err(|error| error.to_string());
            }
            // The kind was defined just now and is not served yet.
            Err(error) => problem = error.to_string(),
        }
        clock.sleep(DEFINED_DELAY).await;
    }
    Err(problem)
}

/// The status of a node is a subresource.
async fn put_node(client: &Client, clock: Clock, node: Value) -> Result<(), String> {
    put(client, clock, "v1", "nodes", node.clone()).await?;
    let nodes = api(client, "v1", "Node", "nodes", "");
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let patch = json!({"status": node["status"]});
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let patched = nodes.patch_status(name, &parameters, &patch).await;
    patched.map(drop).map_err(|error| error.to_string())
}
