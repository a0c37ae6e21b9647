use std::{future::pending, time::Duration};

use hyper::Request;
use k8s_openapi::{
    api::core::v1::{Event, Node, Pod},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use neap_kit::context::Context;
use serde_json::{Value, json};

use super::decide::{Decision, NodeInfo, decide};
use crate::{
    stage::{TestCluster, fields},
    workload::amount,
};

const SETTLE_TIME: Duration = Duration::from_secs(2);

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "disk": "ssd", "cores": "8"}},
        "status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "3"}},
    })
}

fn pod(name: &str, spec: Value) -> Value {
    let requests = json!({"cpu": "600m", "memory": "100Mi"});
    let mut pod = json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}]},
    });
    pod["spec"].as_object_mut().unwrap().extend(fields(spec));
    pod
}

async fn cluster() -> TestCluster {
    TestCluster::start(|context| Ok(vec![super::component(context)?])).await
}

async fn add_node(cluster: &TestCluster, node: Value) {
    let name = node["metadata"]["name"].as_str().unwrap().to_owned();
    let status = json!({"status": node["status"].clone()});
    cluster.create_cluster_scoped::<Node>(node).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let merge = PatchParams::default();
    let patched = nodes
        .patch_status(&name, &merge, &Patch::Merge(status))
        .await;
    patched.unwrap();
    // A new node is tainted until it is ready; the taint controller does not run here.
    let open = json!({"spec": {"taints": null}});
    let patched = nodes.patch(&name, &merge, &Patch::Merge(open)).await;
    patched.unwrap();
}

async fn place(cluster: &TestCluster, name: &str) -> String {
    let pod = cluster.get::<Pod>(name).await;
    if let Some(node) = pod.spec.unwrap().node_name {
        return node;
    }
    let conditions = pod.status.unwrap().conditions.unwrap();
    let scheduled = conditions
        .iter()
        .find(|condition| condition.type_ == "PodScheduled");
    let scheduled = scheduled.unwrap();
    assert_eq!(scheduled.status, "False");
    format!(
        "{}: {}",
        scheduled.reason.as_deref().unwrap(),
        scheduled.message.as_deref().unwrap()
    )
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_where_it_fits_or_reports_why_not() {
    let cluster = cluster().await;
    cluster.create::<Pod>(pod("a", json!({}))).await;
    cluster.advance(SETTLE_TIME).await;
    let none = "Unschedulable: no nodes available to schedule pods";
    assert_eq!(place(&cluster, "a").await, none);

    add_node(&cluster, node("one", "1")).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(
        place(&cluster, "a").await,
        "one",
        "tried again with the node"
    );

    cluster.create::<Pod>(pod("b", json!({}))).await;
    cluster.advance(SETTLE_TIME).await;
    let full = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(place(&cluster, "b").await, format!("Unschedulable: {full}"));
    let events: Vec<Event> = cluster.list().await;
    let count = |reason: &str, message: &str| {
        let same = |event: &&Event| {
            event.reason.as_deref() == Some(reason) && event.message.as_deref() == Some(message)
        };
        events.iter().filter(same).count()
    };
    assert_eq!(count("FailedScheduling", full), 1);
    assert_eq!(
        count("Scheduled", "Successfully assigned default/a to one"),
        1
    );

    let pods: Api<Pod> = cluster.api();
    let now = DeleteParams::default().grace_period(0);
    pods.delete("a", &now).await.unwrap();
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(
        place(&cluster, "b").await,
        "one",
        "tried again when a pod is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_has_the_topology_labels_of_its_node() {
    let cluster = cluster().await;
    let mut there = node("n1", "1");
    there["metadata"]["labels"] = json!({
        "topology.kubernetes.io/zone": "east", "topology.kubernetes.io/region": "sea", "disk": "ssd",
    });
    add_node(&cluster, there).await;
    cluster.create::<Pod>(pod("a", json!({}))).await;
    cluster.advance(SETTLE_TIME).await;
    let labels = cluster.get::<Pod>("a").await.metadata.labels;
    let expected =
        json!({"topology.kubernetes.io/zone": "east", "topology.kubernetes.io/region": "sea"});
    assert_eq!(json!(labels), expected);
}

#[tokio::test(start_paused = true)]
async fn two_pods_do_not_get_the_same_resources() {
    let cluster = cluster().await;
    add_node(&cluster, node("one", "1")).await;
    add_node(&cluster, node("two", "1")).await;
    cluster.advance(SETTLE_TIME).await;
    for name in ["a", "b", "c"] {
        cluster.create::<Pod>(pod(name, json!({}))).await;
    }
    cluster.advance(SETTLE_TIME).await;
    let mut places = Vec::new();
    for name in ["a", "b", "c"] {
        places.push(place(&cluster, name).await);
    }
    places.sort();
    let full = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.";
    assert_eq!(places, [full, "one", "two"]);
}

/// A scheduler whose request to bind the pod `stuck` is never answered.
async fn stuck_stage() -> TestCluster {
    TestCluster::start(|context| {
        let server = context.client.clone();
        let silent = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if request.uri().path().ends_with("/pods/stuck/binding") {
                    pending::<()>().await;
                }
                server.send(request).await
            }
        });
        let context = Context {
            client: Client::new(silent, "default"),
            ..context.clone()
        };
        Ok(vec![super::component(&context)?])
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn no_pod_waits_for_another_and_resources_of_a_failed_binding_are_released() {
    let cluster = stuck_stage().await;
    add_node(&cluster, node("one", "1")).await;
    cluster.advance(SETTLE_TIME).await;
    cluster.create::<Pod>(pod("stuck", json!({}))).await;
    let small = json!({"containers": [{"name": "main", "image": "app"}]});
    cluster.create::<Pod>(pod("small", small)).await;
    cluster.create::<Pod>(pod("large", json!({}))).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(place(&cluster, "small").await, "one");
    let full = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(
        place(&cluster, "large").await,
        full,
        "the other may still be bound"
    );
    cluster.advance(Duration::from_secs(12)).await;
    assert_eq!(place(&cluster, "large").await, "one");
}

#[tokio::test(start_paused = true)]
async fn gates_hold_a_pod_until_they_are_removed() {
    let cluster = cluster().await;
    add_node(&cluster, node("one", "1")).await;
    let gates = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    cluster.create::<Pod>(pod("a", gates)).await;
    cluster
        .create::<Pod>(pod("other", json!({"schedulerName": "mine"})))
        .await;
    cluster.advance(SETTLE_TIME).await;
    let gated = "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates";
    assert_eq!(place(&cluster, "a").await, gated);
    let lifted = json!({"spec": {"schedulingGates": null}});
    cluster.patch::<Pod>("a", lifted).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(place(&cluster, "a").await, "one");
    let other = cluster.get::<Pod>("other").await;
    assert_eq!(
        other.spec.unwrap().node_name,
        None,
        "another scheduler binds it"
    );
}

/// The decision for a pod with this spec, one node with these changes, and one pod on it.
fn decided(spec: Value, changes: Value, there: &Value) -> String {
    let mut node = node("one", "1");
    node["spec"] = changes;
    let node = serde_json::from_value(node).unwrap();
    let mut pod = pod("a", json!({"containers": [{"name": "main"}]}));
    pod["spec"].as_object_mut().unwrap().extend(fields(spec));
    let there = json!({"metadata": {"name": "there"}, "spec": there});
    let there = serde_json::from_value(there).unwrap();
    let place = NodeInfo {
        node: &node,
        pods: vec![&there],
    };
    match decide(&serde_json::from_value(pod).unwrap(), &[place]) {
        Decision::Bind(node) => node,
        Decision::Gated => "gated".to_owned(),
        Decision::Unschedulable(why) => why.replace("0/1 nodes are available: 1 ", ""),
    }
}

#[test]
fn selectors_and_affinity_admit_and_exclude() {
    let affinity = |expression: Value| {
        let terms = json!([{"matchExpressions": [expression]}]);
        let required = json!({"nodeSelectorTerms": terms});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    let key = |operator: &str, key: &str, values: &[&str]| {
        affinity(json!({"key": key, "operator": operator, "values": values}))
    };
    let by_name = |name: &str| {
        let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]);
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    };
    let elsewhere = "node(s) didn't match Pod's node affinity/selector.";
    let selectors = [
        (json!({"nodeSelector": {"disk": "ssd"}}), "one"),
        (json!({"nodeSelector": {"disk": "tape"}}), elsewhere),
        (key("In", "disk", &["hdd", "ssd"]), "one"),
        (key("NotIn", "disk", &["ssd"]), elsewhere),
        (key("Exists", "gpu", &[]), elsewhere),
        (key("DoesNotExist", "gpu", &[]), "one"),
        (key("Gt", "cores", &["7"]), "one"),
        (key("Lt", "cores", &["8"]), elsewhere),
        (by_name("one"), "one"),
        (by_name("two"), elsewhere),
    ];
    for (spec, expected) in selectors {
        assert_eq!(
            decided(spec.clone(), json!({}), &json!({"containers": []})),
            expected,
            "{spec}"
        );
    }
}

#[test]
fn taints_and_cordons_exclude_pods_that_do_not_tolerate_them() {
    let taint = json!({"taints": [{"key": "lab", "value": "x", "effect": "NoSchedule"}]});
    let tolerating = |toleration: Value| json!({"tolerations": [toleration]});
    let tainted = "node(s) had untolerated taint {lab: x}.";
    let closed = json!({"unschedulable": true});
    let tolerations = [
        (taint.clone(), json!({}), tainted),
        (
            taint.clone(),
            tolerating(json!({"key": "lab", "value": "x"})),
            "one",
        ),
        (
            taint.clone(),
            tolerating(json!({"key": "lab", "value": "y"})),
            tainted,
        ),
        (
            taint.clone(),
            tolerating(json!({"key": "lab", "operator": "Exists", "effect": "NoExecute"})),
            tainted,
        ),
        (taint, tolerating(json!({"operator": "Exists"})), "one"),
        (closed.clone(), json!({}), "node(s) were unschedulable."),
        (closed, tolerating(json!({"operator": "Exists"})), "one"),
    ];
    for (node, spec, expected) in tolerations {
        assert_eq!(
            decided(spec.clone(), node, &json!({"containers": []})),
            expected,
            "{spec}"
        );
    }
}

#[test]
fn ports_and_resources_are_assigned_once() {
    let port = |ip: &str, port: u16| {
        let ports = json!([{"containerPort": 1, "hostPort": port, "hostIP": ip}]);
        json!({"containers": [{"name": "main", "ports": ports}]})
    };
    let taken = "node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(
        decided(port("", 80), json!({}), &port("127.0.0.1", 80)),
        taken
    );
    assert_eq!(
        decided(port("127.0.0.2", 80), json!({}), &port("127.0.0.1", 80)),
        "one"
    );
    assert_eq!(decided(port("", 80), json!({}), &port("", 81)), "one");

    let asks = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let alone = json!({"containers": [asks("500m")]});
    let cases = [
        (json!({"containers": [asks("500m")]}), "one"),
        (
            json!({"containers": [asks("300m"), asks("300m")]}),
            "Insufficient cpu.",
        ),
        (
            json!({"containers": [asks("100m")], "initContainers": [asks("600m")]}),
            "Insufficient cpu.",
        ),
        (
            json!({"containers": [asks("100m")], "overhead": {"cpu": "450m"}}),
            "Insufficient cpu.",
        ),
        (
            json!({"containers": [{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]}),
            "Insufficient example.com/gpu.",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(decided(spec.clone(), json!({}), &alone), expected, "{spec}");
    }
}

#[test]
fn quantities_are_parsed() {
    let read = |text: &str| amount(&Quantity(text.to_owned()));
    assert_eq!(read("1"), read("1000m"));
    assert_eq!(read("0.5"), read("500m"));
    assert_eq!(read("1Ki"), read("1024"));
    assert_eq!(read("1e3"), read("1k"));
    assert_eq!(read("1.5Gi"), read("1536Mi"));
    assert_eq!(read("100n"), Some(100));
    assert_eq!(read("one"), None);
}
