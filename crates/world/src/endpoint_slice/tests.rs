use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::decide::{Decision, Facts, decide};
use crate::stage::{TestCluster, fields};

const SETTLE_TIME: Duration = Duration::from_secs(2);

async fn cluster() -> TestCluster {
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    let labels = json!({"topology.kubernetes.io/zone": "east"});
    let node = json!({"metadata": {"name": "one", "labels": labels}});
    cluster.create_cluster_scoped::<Node>(node).await;
    cluster
}

fn service(name: &str, more: Value) -> Value {
    let mut service = json!({
        "metadata": {"name": name, "labels": {"team": "blue"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    });
    service["spec"]
        .as_object_mut()
        .unwrap()
        .extend(fields(more));
    service
}

fn pod(name: &str, port: u16) -> Value {
    let ports = json!([{"name": "http", "containerPort": port}]);
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}, "finalizers": ["test.neaptide.dev/stays"]},
        "spec": {
            "nodeName": "one", "hostname": name, "subdomain": "head",
            "containers": [{"name": "main", "image": "app", "ports": ports}],
        },
    })
}

fn at(ip: &str, ready: bool) -> Value {
    json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
    })
}

async fn up(cluster: &TestCluster, name: &str, port: u16, ip: &str, ready: bool) {
    cluster.create::<Pod>(pod(name, port)).await;
    cluster.patch_status::<Pod>(name, at(ip, ready)).await;
}

/// Pod, port, ready, serving, terminating of all endpoints.
fn summary(slices: &[EndpointSlice]) -> BTreeSet<String> {
    let lines = slices.iter().flat_map(|slice| {
        let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
        let ports: Vec<_> = ports.collect();
        let endpoints = slice.endpoints.iter().flatten();
        endpoints.map(move |endpoint| {
            let is = endpoint.conditions.clone().unwrap();
            let [ready, serving, terminating] =
                [is.ready, is.serving, is.terminating].map(Option::unwrap);
            let name = endpoint.target_ref.clone().unwrap().name.unwrap();
            format!("{name} {ports:?} {ready} {serving} {terminating}")
        })
    });
    lines.collect()
}

fn lines<const N: usize>(lines: [&str; N]) -> BTreeSet<String> {
    lines.map(str::to_owned).into()
}

#[tokio::test(start_paused = true)]
async fn endpoints_have_the_conditions_of_their_pods() {
    let cluster = cluster().await;
    cluster.create::<Service>(service("web", json!({}))).await;
    up(&cluster, "a", 8080, "10.1.0.1", true).await;
    up(&cluster, "b", 8080, "10.1.0.2", false).await;
    up(&cluster, "c", 9090, "10.1.0.3", true).await;
    up(&cluster, "d", 8080, "10.1.0.4", true).await;
    cluster.delete::<Pod>("d").await;
    cluster.advance(SETTLE_TIME).await;
    let slices: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!(slices.len(), 2, "one for each set of port numbers");
    let expected = [
        "a [8080] true true false",
        "b [8080] false false false",
        "c [9090] true true false",
        "d [8080] false true true",
    ];
    assert_eq!(summary(&slices), lines(expected));
    let first = &slices[0].endpoints.as_ref().unwrap()[0];
    assert_eq!(first.node_name.as_deref(), Some("one"));
    assert_eq!(first.zone.as_deref(), Some("east"));
    assert_eq!(first.hostname, None, "its subdomain is another");
    let owner = cluster.get::<Service>("web").await;
    for slice in &slices {
        assert_eq!(slice.metadata.generate_name.as_deref(), Some("web-"));
        assert_eq!(
            slice.owner_references(),
            [crate::workload::owned_by(&owner).unwrap()]
        );
        let labels = json!({
            "team": "blue",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        });
        assert_eq!(json!(slice.labels()), labels);
    }
}

#[tokio::test(start_paused = true)]
async fn without_pods_there_is_one_slice_and_it_is_empty() {
    let cluster = cluster().await;
    cluster.create::<Service>(service("web", json!({}))).await;
    cluster.advance(SETTLE_TIME).await;
    let before: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!(before.len(), 1);
    assert_eq!((&before[0].endpoints, &before[0].ports), (&None, &None));

    up(&cluster, "a", 8080, "10.1.0.1", true).await;
    cluster.advance(SETTLE_TIME).await;
    let filled: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!(summary(&filled), lines(["a [8080] true true false"]));
    assert_eq!(filled[0].name_any(), before[0].name_any(), "rewritten");

    let ended = json!({"phase": "Succeeded"});
    cluster.patch_status::<Pod>("a", ended).await;
    cluster.advance(SETTLE_TIME).await;
    let after: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!((after.len(), &after[0].endpoints), (1, &None));
}

#[tokio::test(start_paused = true)]
async fn headless_services_have_hostnames_and_may_publish_unready_pods() {
    let cluster = cluster().await;
    let more = json!({"clusterIP": "None", "publishNotReadyAddresses": true});
    cluster.create::<Service>(service("head", more)).await;
    up(&cluster, "a", 8080, "10.1.0.1", false).await;
    cluster.advance(SETTLE_TIME).await;
    let slices: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!(summary(&slices), lines(["a [8080] true false false"]));
    let hostname = slices[0].endpoints.as_ref().unwrap()[0].hostname.clone();
    assert_eq!(hostname.as_deref(), Some("a"));
    let label = slices[0].labels().get("service.kubernetes.io/headless");
    assert_eq!(label.map(String::as_str), Some(""));
}

#[tokio::test(start_paused = true)]
async fn endpoints_have_the_zone_of_their_node() {
    let cluster = cluster().await;
    cluster.create::<Service>(service("web", json!({}))).await;
    up(&cluster, "a", 8080, "10.1.0.1", true).await;
    cluster.advance(SETTLE_TIME).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let west = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "west"}}});
    let patched = nodes
        .patch("one", &PatchParams::default(), &Patch::Merge(west))
        .await;
    patched.unwrap();
    cluster.advance(SETTLE_TIME).await;
    let slices: Vec<EndpointSlice> = cluster.list().await;
    let zone = slices[0].endpoints.as_ref().unwrap()[0].zone.as_deref();
    assert_eq!(zone, Some("west"));
}

#[tokio::test(start_paused = true)]
async fn a_service_without_selector_is_left_alone() {
    let cluster = cluster().await;
    let own = service("own", json!({"selector": null}));
    cluster.create::<Service>(own).await;
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    cluster.create::<Service>(service("far", external)).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(cluster.list::<EndpointSlice>().await, []);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_write_the_slices_of_one() {
    let components = |context: &_| Ok(vec![super::component(context)?, super::component(context)?]);
    let cluster = TestCluster::start(components).await;
    cluster.create::<Service>(service("web", json!({}))).await;
    for number in 1..=120 {
        let ip = format!("10.1.0.{number}");
        up(&cluster, &format!("p{number}"), 8080, &ip, true).await;
    }
    cluster.advance(SETTLE_TIME).await;
    let slices: Vec<EndpointSlice> = cluster.list().await;
    assert_eq!(summary(&slices).len(), 120);
    let mut sizes = sizes(&slices);
    sizes.sort_unstable();
    assert_eq!(sizes, [20, 100]);
}

fn many(count: usize) -> Vec<Pod> {
    let pods = (0..count).map(|number| {
        let mut pod = pod(&format!("p{number:03}"), 8080);
        pod["metadata"]["uid"] = number.to_string().into();
        pod["status"] = at(&format!("10.2.{}.{}", number / 200, number % 200), true);
        serde_json::from_value(pod).unwrap()
    });
    pods.collect()
}

fn decided(pods: &[Pod], slices: &[EndpointSlice]) -> Decision {
    let mut of = service("web", json!({}));
    of["metadata"]["uid"] = "u".into();
    decide(&Facts {
        trigger_time: None,
        service: &serde_json::from_value(of).unwrap(),
        pods: pods.iter().collect(),
        slices: slices.iter().collect(),
        zones: BTreeMap::default(),
    })
}

fn sizes(slices: &[EndpointSlice]) -> Vec<usize> {
    let size = |slice: &EndpointSlice| slice.endpoints.as_ref().map_or(0, Vec::len);
    slices.iter().map(size).collect()
}

#[test]
fn a_slice_holds_a_hundred_and_a_change_is_written_to_one() {
    let pods = many(250);
    let first = decided(&pods, &[]);
    assert_eq!(sizes(&first.create), [100, 100, 50]);
    let names: BTreeSet<_> = first.create.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(first, decided(&pods, &[]), "the same names again");
    assert_eq!(decided(&pods, &first.create), Decision::default());

    let fewer = decided(&pods[1..], &first.create);
    assert_eq!(sizes(&fewer.replace), [99]);
    assert_eq!((fewer.create.len(), fewer.delete.len()), (0, 0));

    let few = decided(&pods[..100], &first.create);
    assert_eq!((few.replace.len(), few.create.len()), (0, 0));
    assert_eq!(few.delete.len(), 2);

    let more = decided(&many(260), &first.create);
    assert_eq!(sizes(&more.replace), [60], "where there is space");
    assert_eq!(more.create.len(), 0);
}
