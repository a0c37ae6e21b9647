//! Changes of others to the objects of the operator are repaired, and objects of KubeElasti are taken over.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
    discovery::ApiResource,
};

use super::*;
use crate::api::labels::PRIVATE;

#[tokio::test(start_paused = true)]
async fn deleted_or_changed_objects_are_restored() {
    let cluster = TestCluster::asleep().await;
    cluster.delete::<EndpointSlice>(SLICE).await;
    cluster.delete::<Service>(PRIVATE_NAME).await;
    cluster.pass(SECOND * 10).await;
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_some());
    assert!(cluster.get::<Service>(PRIVATE_NAME).await.is_some());
    cluster
        .patch::<EndpointSlice>(SLICE, json!({"ports": [], "endpoints": []}))
        .await;
    cluster.pass(SECOND * 10).await;
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(slice.ports.unwrap().len(), 1);
    assert_eq!(slice.endpoints.unwrap().len(), 1);
    assert_eq!(cluster.replicas().await, 0);
}

#[tokio::test(start_paused = true)]
async fn changes_of_ports_selectors_and_resolvers_are_applied() {
    let cluster = TestCluster::asleep().await;
    let ports = json!([
        {"name": "http", "port": 80}, {"name": "tls", "port": 443},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]);
    let change = json!({"spec": {"ports": ports, "selector": {"app": "other"}}});
    cluster.patch::<Service>("web", change).await;
    cluster.resolvers(&["10.9.0.2", "10.9.0.1"]).await;
    cluster.pass(SECOND * 10).await;
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    let ports: Vec<_> = slice
        .ports
        .unwrap()
        .into_iter()
        .map(|it| it.port.unwrap())
        .collect();
    assert_eq!(ports, [20_000, 20_001]);
    let addresses: Vec<_> = slice
        .endpoints
        .unwrap()
        .into_iter()
        .flat_map(|it| it.addresses)
        .collect();
    assert_eq!(addresses, ["10.9.0.1", "10.9.0.2"]);
    let private: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    let spec = private.spec.unwrap();
    assert_eq!(spec.ports.unwrap().len(), 3);
    assert_eq!(spec.selector.unwrap()["app"], "other");
    // A removed port is freed.
    let change = json!({"spec": {"ports": [{"name": "tls", "port": 443}]}});
    cluster.patch::<Service>("web", change).await;
    cluster.pass(SECOND * 10).await;
    let freed: ConfigMap = cluster.get("neaptide-idle-freed-ports").await.unwrap();
    assert_eq!(freed.data.unwrap().keys().collect::<Vec<_>>(), ["20000"]);
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(slice.ports.unwrap()[0].port, Some(20_001));
}

#[tokio::test(start_paused = true)]
async fn slices_without_the_right_owner_are_ignored() {
    let cluster = TestCluster::asleep().await;
    let foreign = json!({
        "metadata": {"name": "foreign", "labels": {"kubernetes.io/service-name": "elasti-resolver-service"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.6.6.6"]}], "ports": [],
    });
    cluster.create::<EndpointSlice>(foreign).await;
    cluster.pass(SECOND * 5).await;
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    let addresses: Vec<_> = slice
        .endpoints
        .unwrap()
        .into_iter()
        .flat_map(|it| it.addresses)
        .collect();
    assert_eq!(addresses, ["10.9.0.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_renamed_service_leaves_no_objects_of_the_first() {
    let cluster = TestCluster::asleep().await;
    let mut other = cluster::public();
    other["metadata"]["name"] = json!("shop");
    cluster.create::<Service>(other).await;
    cluster
        .patch::<ElastiService>("web", json!({"spec": {"service": "shop"}}))
        .await;
    cluster.pass(SECOND * 10).await;
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_none());
    assert!(cluster.get::<Service>(PRIVATE_NAME).await.is_none());
    let slice = crate::api::names::resolver_slice("shop");
    let slice: EndpointSlice = cluster.get(&slice).await.unwrap();
    // Connections that still arrive at the first port are meant for the first Service.
    assert_eq!(slice.ports.unwrap()[0].port, Some(20_001));
    let ports = cluster.status().await.ports;
    assert_eq!(
        (ports[0].resolver_port, ports[0].service.as_deref()),
        (20_001, Some("shop"))
    );
    let freed: ConfigMap = cluster.get("neaptide-idle-freed-ports").await.unwrap();
    assert_eq!(freed.data.unwrap().keys().collect::<Vec<_>>(), ["20000"]);
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_service_of_kube_elasti_is_taken_over_in_place() {
    let cluster = TestCluster::open().await;
    cluster.scale(0).await;
    cluster.pods_are_ready(false).await;
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.7"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old: EndpointSlice = cluster.create(slice).await;
    let private = json!({
        "metadata": {"name": PRIVATE_NAME, "annotations": {"external-dns.alpha.kubernetes.io/hostname": "x"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was: Service = cluster.create(private).await;
    cluster.verdicts.idle();
    cluster.declare().await;
    cluster
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    cluster.pass(SECOND * 10).await;
    let new: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(new.metadata.uid, old.metadata.uid, "it was not recreated");
    assert_eq!(new.ports.unwrap()[0].port, Some(20_000));
    assert_eq!(new.endpoints.unwrap()[0].addresses, ["10.9.0.1"]);
    let now: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert_eq!(now.spec.unwrap().type_.as_deref(), Some("ClusterIP"));
    assert_eq!(cluster.replicas().await, 0, "it stays asleep");
}

#[tokio::test(start_paused = true)]
async fn resolvers_of_kube_elasti_stay_until_ours_are_ready() {
    let cluster = TestCluster::open().await;
    cluster.prover.set_incompatible(&["10.9.0.1"]);
    cluster.scale(0).await;
    cluster.pods_are_ready(false).await;
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.1"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old: EndpointSlice = cluster.create(slice).await;
    cluster.verdicts.idle();
    cluster.declare().await;
    cluster
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    cluster.pass(SECOND * 9).await;
    let now: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(now, old, "it is unchanged");
    assert_eq!(cluster.replicas().await, 0);
    // Once one of ours is ready, the slice leads only to it.
    cluster.resolvers(&["10.9.0.1", "10.9.0.2"]).await;
    cluster.pass(SECOND * 5).await;
    let addresses = async || {
        let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
        assert_eq!(slice.ports.unwrap()[0].port, Some(20_000));
        let endpoints = slice.endpoints.into_iter().flatten();
        endpoints
            .flat_map(|endpoint| endpoint.addresses)
            .collect::<Vec<_>>()
    };
    assert_eq!(addresses().await, ["10.9.0.2"]);
    // No watch shows that a resolver was replaced by one of ours, so it is called again.
    cluster.prover.set_incompatible(&[]);
    cluster.pass(SECOND * 6).await;
    assert_eq!(addresses().await, ["10.9.0.1", "10.9.0.2"]);
    assert_eq!(cluster.replicas().await, 0, "it stayed asleep");
}

#[tokio::test(start_paused = true)]
async fn without_a_compatible_resolver_services_wake() {
    let cluster = TestCluster::asleep().await;
    cluster.prover.set_incompatible(&["10.9.0.2"]);
    cluster.resolvers(&["10.9.0.2"]).await;
    cluster.pass(SECOND * 11).await;
    assert_eq!(cluster.replicas().await, 1);
    let cause = cluster.status().await.last_wake.unwrap().cause;
    assert_eq!(cause, "ResolverUnavailable");
}

/// A slice of KubeElasti 0.1.30: without an owner, and without our labels.
async fn slice_of_kubeelasti(cluster: &TestCluster) {
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.1"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    cluster.create::<EndpointSlice>(slice).await;
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_kube_elasti_beside_running_pods_is_deleted() {
    let cluster = TestCluster::open().await;
    slice_of_kubeelasti(&cluster).await;
    cluster.declare().await;
    cluster
        .patch_status::<ElastiService>("web", json!({"mode": "serve"}))
        .await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_none());
    assert_eq!(cluster.status().await.mode, Some(Mode::Serve));
    // It is searched once, and not with each reconcile.
    let reads = || {
        let calls = cluster.calls();
        let slice = |path: &str| path.ends_with(SLICE);
        calls.iter().filter(|(_, path)| slice(path)).count()
    };
    let before = reads();
    cluster.verdicts.busy();
    cluster.pass(MINUTE * 5).await;
    assert_eq!(reads(), before);
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_kube_elasti_is_deleted_with_its_object() {
    for mode in ["serve", "proxy"] {
        let cluster = TestCluster::open().await;
        slice_of_kubeelasti(&cluster).await;
        let mut service = cluster::elasti_service();
        let kept = json!(["elasti.truefoundry.com/finalizer", "example.com/kept"]);
        service["metadata"]["finalizers"] = kept;
        cluster.create::<ElastiService>(service).await;
        cluster.delete::<ElastiService>("web").await;
        cluster
            .patch_status::<ElastiService>("web", json!({"mode": mode}))
            .await;
        cluster.pass(MINUTE * 2).await;
        assert!(
            cluster.get::<EndpointSlice>(SLICE).await.is_none(),
            "{mode}"
        );
        let web: ElastiService = cluster.get("web").await.unwrap();
        let finalizers = web.metadata.finalizers.unwrap();
        assert_eq!(finalizers, ["example.com/kept"], "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_is_woken_while_resolvers_are_replaced() {
    let cluster = TestCluster::asleep().await;
    cluster.delete::<ElastiService>("web").await;
    cluster.resolvers(&["10.9.0.2"]).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas().await, 3);
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(slice.endpoints.unwrap()[0].addresses, ["10.9.0.2"]);
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_service_that_kube_elasti_was_deleting_are_found() {
    let cluster = TestCluster::open().await;
    cluster.scale(0).await;
    cluster.pods_are_ready(false).await;
    slice_of_kubeelasti(&cluster).await;
    let private = json!({
        "metadata": {"name": PRIVATE_NAME},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    cluster.create::<Service>(private).await;
    let mut service = cluster::elasti_service();
    service["metadata"]["finalizers"] = json!(["elasti.truefoundry.com/finalizer"]);
    cluster.create::<ElastiService>(service).await;
    cluster
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas().await, 1);
    let private: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    assert!(
        private.labels().contains_key(PRIVATE),
        "so that its pods are seen"
    );
    assert!(
        cluster.get::<EndpointSlice>(SLICE).await.is_some(),
        "no pod is ready"
    );
    cluster.pods_are_ready(true).await;
    cluster.pass(MINUTE * 2).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_none());
    assert!(cluster.get::<Service>(PRIVATE_NAME).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn ports_of_a_service_without_finalizer_are_quarantined_too() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.status().await.ports[0].resolver_port, 20_000);
    cluster
        .patch::<ElastiService>("web", json!({"metadata": {"finalizers": null}}))
        .await;
    cluster.delete::<ElastiService>("web").await;
    // Created again at once, before the operator reconciled the deletion.
    cluster.declare().await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.status().await.ports[0].resolver_port, 20_001);
    let freed: ConfigMap = cluster.get("neaptide-idle-freed-ports").await.unwrap();
    assert!(freed.data.unwrap().contains_key("20000"));
    // The same when it is not created again.
    cluster
        .patch::<ElastiService>("web", json!({"metadata": {"finalizers": null}}))
        .await;
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    let freed: ConfigMap = cluster.get("neaptide-idle-freed-ports").await.unwrap();
    let freed = freed.data.unwrap();
    assert_eq!(freed.keys().collect::<Vec<_>>(), ["20000", "20001"]);
}

#[tokio::test(start_paused = true)]
async fn a_rival_deletes_nothing_of_the_other() {
    let cluster = TestCluster::asleep().await;
    let mut other = cluster::elasti_service();
    other["metadata"]["name"] = json!("other");
    cluster.create::<ElastiService>(other).await;
    cluster.pass(SECOND * 5).await;
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    let private: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    cluster.delete::<ElastiService>("other").await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<ElastiService>("other").await.is_none());
    let now: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(now.metadata.uid, slice.metadata.uid);
    let now: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, private.metadata.uid);
    assert_eq!(cluster.replicas().await, 0, "it stays asleep");
}

#[tokio::test(start_paused = true)]
async fn any_kind_with_a_scale_subresource_can_sleep() {
    let cluster = TestCluster::open().await;
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    let definition = json!({
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Lamp", "plural": "lamps", "singular": "lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                }},
            }],
        },
    });
    cluster
        .define(serde_json::from_value::<CustomResourceDefinition>(definition).unwrap())
        .await;
    let named = kube::api::GroupVersionKind::gvk("example.com", "v1", "Lamp");
    let resource = ApiResource::from_gvk(&named);
    let lamps: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &resource);
    let lamp = DynamicObject::new("web", &resource).data(json!({"spec": {"size": 4}}));
    lamps.create(&PostParams::default(), &lamp).await.unwrap();
    let mut service = cluster::elasti_service();
    service["spec"]["scaleTargetRef"] =
        json!({"apiVersion": "example.com/v1", "kind": "Lamp", "name": "web"});
    cluster.create::<ElastiService>(service).await;
    cluster.verdicts.idle();
    cluster.pass(MINUTE * 11).await;
    assert_eq!(lamps.get("web").await.unwrap().data["spec"]["size"], 0);
    cluster.verdicts.busy();
    cluster.pass(SECOND).await;
    assert_eq!(lamps.get("web").await.unwrap().data["spec"]["size"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_awake_service_of_kube_elasti_is_taken_over_and_sleeps_later() {
    let cluster = TestCluster::open().await;
    let before: Service = cluster.get("web").await.unwrap();
    // The objects of 0.1.30 after a wake: its copy of the Service, its finalizer, its mode.
    let private = json!({
        "metadata": {"name": PRIVATE_NAME},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was: Service = cluster.create(private).await;
    let mut service = cluster::elasti_service();
    service["metadata"]["finalizers"] = json!(["elasti.truefoundry.com/finalizer"]);
    cluster.create::<ElastiService>(service).await;
    let status = json!({
        "mode": "serve", "lastReconciledTime": "2026-01-01T00:00:00.123456789Z",
        "lastScaledUpTime": cluster.now(),
    });
    cluster.patch_status::<ElastiService>("web", status).await;
    cluster.verdicts.idle();
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.replicas().await, 3);
    let status = cluster.status().await;
    assert_eq!(status.mode, Some(Mode::Serve));
    assert_eq!(status.ports[0].resolver_port, 20_000);
    let now: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert!(
        now.labels().contains_key(PRIVATE),
        "so that the watch shows it"
    );
    cluster.pass(MINUTE * 11).await;
    assert_eq!(cluster.replicas().await, 0);
    let after: Service = cluster.get("web").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
}
