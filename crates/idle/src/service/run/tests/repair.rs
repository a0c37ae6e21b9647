//! Whatever others do to what was made, it is as it should be again.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DynamicObject, PostParams},
    discovery::ApiResource,
};

use super::{super::is_private, *};

#[tokio::test(start_paused = true)]
async fn what_somebody_deletes_or_changes_is_made_again() {
    let stage = Stage::asleep().await;
    stage.delete::<EndpointSlice>(SLICE).await;
    stage.delete::<Service>(PRIVATE_NAME).await;
    stage.pass(SECOND * 10).await;
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_some());
    assert!(stage.get::<Service>(PRIVATE_NAME).await.is_some());
    stage
        .patch::<EndpointSlice>(SLICE, json!({"ports": [], "endpoints": []}))
        .await;
    stage.pass(SECOND * 10).await;
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(slice.ports.unwrap().len(), 1);
    assert_eq!(slice.endpoints.unwrap().len(), 1);
    assert_eq!(stage.replicas().await, 0);
}

#[tokio::test(start_paused = true)]
async fn ports_selectors_and_resolvers_that_change_are_followed() {
    let stage = Stage::asleep().await;
    let ports = json!([
        {"name": "http", "port": 80}, {"name": "tls", "port": 443},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]);
    let change = json!({"spec": {"ports": ports, "selector": {"app": "other"}}});
    stage.patch::<Service>("web", change).await;
    stage.resolvers(&["10.9.0.2", "10.9.0.1"]).await;
    stage.pass(SECOND * 10).await;
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
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
    let private: Service = stage.get(PRIVATE_NAME).await.unwrap();
    let spec = private.spec.unwrap();
    assert_eq!(spec.ports.unwrap().len(), 3);
    assert_eq!(spec.selector.unwrap()["app"], "other");
    // One that goes is freed.
    let change = json!({"spec": {"ports": [{"name": "tls", "port": 443}]}});
    stage.patch::<Service>("web", change).await;
    stage.pass(SECOND * 10).await;
    let freed: ConfigMap = stage.get("neaptide-idle-freed-ports").await.unwrap();
    assert_eq!(freed.data.unwrap().keys().collect::<Vec<_>>(), ["20000"]);
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(slice.ports.unwrap()[0].port, Some(20_001));
}

#[tokio::test(start_paused = true)]
async fn slices_that_others_make_in_the_name_of_resolvers_lead_nowhere() {
    let stage = Stage::asleep().await;
    let foreign = json!({
        "metadata": {"name": "foreign", "labels": {"kubernetes.io/service-name": "elasti-resolver-service"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.6.6.6"]}], "ports": [],
    });
    stage.create::<EndpointSlice>(foreign).await;
    stage.pass(SECOND * 5).await;
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    let addresses: Vec<_> = slice
        .endpoints
        .unwrap()
        .into_iter()
        .flat_map(|it| it.addresses)
        .collect();
    assert_eq!(addresses, ["10.9.0.1"]);
}

#[tokio::test(start_paused = true)]
async fn another_service_is_followed_and_nothing_is_left_of_the_first() {
    let stage = Stage::asleep().await;
    let mut other = stage::public();
    other["metadata"]["name"] = json!("shop");
    stage.create::<Service>(other).await;
    stage
        .patch::<ElastiService>("web", json!({"spec": {"service": "shop"}}))
        .await;
    stage.pass(SECOND * 10).await;
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_none());
    assert!(stage.get::<Service>(PRIVATE_NAME).await.is_none());
    let slice = crate::api::names::resolver_slice("shop");
    let slice: EndpointSlice = stage.get(&slice).await.unwrap();
    // Who still comes to the port of the first means that one.
    assert_eq!(slice.ports.unwrap()[0].port, Some(20_001));
    let ports = stage.status().await.ports;
    assert_eq!(
        (ports[0].resolver_port, ports[0].service.as_deref()),
        (20_001, Some("shop"))
    );
    let freed: ConfigMap = stage.get("neaptide-idle-freed-ports").await.unwrap();
    assert_eq!(freed.data.unwrap().keys().collect::<Vec<_>>(), ["20000"]);
}

#[tokio::test(start_paused = true)]
async fn what_kubeelasti_left_asleep_is_taken_over_in_place() {
    let stage = Stage::open().await;
    stage.scale(0).await;
    stage.pods_are_ready(false).await;
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.7"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old: EndpointSlice = stage.create(slice).await;
    let private = json!({
        "metadata": {"name": PRIVATE_NAME, "annotations": {"external-dns.alpha.kubernetes.io/hostname": "x"}},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was: Service = stage.create(private).await;
    stage.verdicts.idle();
    stage.declare().await;
    stage
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    stage.pass(SECOND * 10).await;
    let new: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(new.metadata.uid, old.metadata.uid, "it was never away");
    assert_eq!(new.ports.unwrap()[0].port, Some(20_000));
    assert_eq!(new.endpoints.unwrap()[0].addresses, ["10.9.0.1"]);
    let now: Service = stage.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert_eq!(now.spec.unwrap().type_.as_deref(), Some("ClusterIP"));
    assert_eq!(stage.replicas().await, 0, "and it sleeps on");
}

#[tokio::test(start_paused = true)]
async fn resolvers_of_kubeelasti_stay_in_its_slice_until_ours_are_ready() {
    let stage = Stage::open().await;
    stage.prover.strangers(&["10.9.0.1"]);
    stage.scale(0).await;
    stage.pods_are_ready(false).await;
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.1"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    let old: EndpointSlice = stage.create(slice).await;
    stage.verdicts.idle();
    stage.declare().await;
    stage
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    stage.pass(SECOND * 9).await;
    let now: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(now, old, "they answer as before");
    assert_eq!(stage.replicas().await, 0);
    // One of ours beside them is the only one that listens where slices lead from then on.
    stage.resolvers(&["10.9.0.1", "10.9.0.2"]).await;
    stage.pass(SECOND * 5).await;
    let addresses = async || {
        let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
        assert_eq!(slice.ports.unwrap()[0].port, Some(20_000));
        let endpoints = slice.endpoints.into_iter().flatten();
        endpoints
            .flat_map(|endpoint| endpoint.addresses)
            .collect::<Vec<_>>()
    };
    assert_eq!(addresses().await, ["10.9.0.2"]);
    // Nothing tells that another became one of ours, so it is asked again.
    stage.prover.strangers(&[]);
    stage.pass(SECOND * 6).await;
    assert_eq!(addresses().await, ["10.9.0.1", "10.9.0.2"]);
    assert_eq!(stage.replicas().await, 0, "and it slept on");
}

#[tokio::test(start_paused = true)]
async fn without_any_resolver_of_ours_everything_is_woken() {
    let stage = Stage::asleep().await;
    stage.prover.strangers(&["10.9.0.2"]);
    stage.resolvers(&["10.9.0.2"]).await;
    stage.pass(SECOND * 11).await;
    assert_eq!(stage.replicas().await, 1);
    let cause = stage.status().await.last_wake.unwrap().cause;
    assert_eq!(cause, "ResolverUnavailable");
}

/// As 0.1.30 makes it: without an owner, and with no label of ours.
async fn slice_of_kubeelasti(stage: &Stage) {
    let slice = json!({
        "metadata": {"name": SLICE, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.9.0.1"]}],
        "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
    });
    stage.create::<EndpointSlice>(slice).await;
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_kubeelasti_left_beside_pods_is_taken_away() {
    let stage = Stage::open().await;
    slice_of_kubeelasti(&stage).await;
    stage.declare().await;
    stage
        .patch_status::<ElastiService>("web", json!({"mode": "serve"}))
        .await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_none());
    assert_eq!(stage.status().await.mode, Some(Mode::Serve));
    // Looked for once, and not each time.
    let looks = || {
        let asked = stage.asked();
        let slice = |path: &str| path.ends_with(SLICE);
        asked.iter().filter(|(_, path)| slice(path)).count()
    };
    let before = looks();
    stage.verdicts.busy();
    stage.pass(MINUTE * 5).await;
    assert_eq!(looks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_kubeelasti_left_goes_with_an_object_that_is_being_deleted() {
    for mode in ["serve", "proxy"] {
        let stage = Stage::open().await;
        slice_of_kubeelasti(&stage).await;
        let mut service = stage::elasti_service();
        let kept = json!(["elasti.truefoundry.com/finalizer", "example.com/kept"]);
        service["metadata"]["finalizers"] = kept;
        stage.create::<ElastiService>(service).await;
        stage.delete::<ElastiService>("web").await;
        stage
            .patch_status::<ElastiService>("web", json!({"mode": mode}))
            .await;
        stage.pass(MINUTE * 2).await;
        assert!(stage.get::<EndpointSlice>(SLICE).await.is_none(), "{mode}");
        let web: ElastiService = stage.get("web").await.unwrap();
        let finalizers = web.metadata.finalizers.unwrap();
        assert_eq!(finalizers, ["example.com/kept"], "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_woken_also_while_resolvers_are_replaced() {
    let stage = Stage::asleep().await;
    stage.delete::<ElastiService>("web").await;
    stage.resolvers(&["10.9.0.2"]).await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.replicas().await, 3);
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(slice.endpoints.unwrap()[0].addresses, ["10.9.0.2"]);
    stage.pods_are_ready(true).await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<ElastiService>("web").await.is_none());
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_of_what_kubeelasti_was_deleting_are_seen() {
    let stage = Stage::open().await;
    stage.scale(0).await;
    stage.pods_are_ready(false).await;
    slice_of_kubeelasti(&stage).await;
    let private = json!({
        "metadata": {"name": PRIVATE_NAME},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    stage.create::<Service>(private).await;
    let mut service = stage::elasti_service();
    service["metadata"]["finalizers"] = json!(["elasti.truefoundry.com/finalizer"]);
    stage.create::<ElastiService>(service).await;
    stage
        .patch_status::<ElastiService>("web", json!({"mode": "proxy"}))
        .await;
    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.replicas().await, 1);
    let private: Service = stage.get(PRIVATE_NAME).await.unwrap();
    assert!(is_private(&private), "so that its pods are seen");
    assert!(
        stage.get::<EndpointSlice>(SLICE).await.is_some(),
        "no pod is ready"
    );
    stage.pods_are_ready(true).await;
    stage.pass(MINUTE * 2).await;
    assert!(stage.get::<ElastiService>("web").await.is_none());
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_none());
    assert!(stage.get::<Service>(PRIVATE_NAME).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn ports_of_one_whose_finalizer_was_stripped_rest_too() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.status().await.ports[0].resolver_port, 20_000);
    stage
        .patch::<ElastiService>("web", json!({"metadata": {"finalizers": null}}))
        .await;
    stage.delete::<ElastiService>("web").await;
    // At once, before anybody looked.
    stage.declare().await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.status().await.ports[0].resolver_port, 20_001);
    let freed: ConfigMap = stage.get("neaptide-idle-freed-ports").await.unwrap();
    assert!(freed.data.unwrap().contains_key("20000"));
    // And once it is gone for good.
    stage
        .patch::<ElastiService>("web", json!({"metadata": {"finalizers": null}}))
        .await;
    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    let freed: ConfigMap = stage.get("neaptide-idle-freed-ports").await.unwrap();
    let freed = freed.data.unwrap();
    assert_eq!(freed.keys().collect::<Vec<_>>(), ["20000", "20001"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_after_nothing_takes_nothing_with_it() {
    let stage = Stage::asleep().await;
    let mut other = stage::elasti_service();
    other["metadata"]["name"] = json!("other");
    stage.create::<ElastiService>(other).await;
    stage.pass(SECOND * 5).await;
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    let private: Service = stage.get(PRIVATE_NAME).await.unwrap();
    stage.delete::<ElastiService>("other").await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<ElastiService>("other").await.is_none());
    let now: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(now.metadata.uid, slice.metadata.uid);
    let now: Service = stage.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, private.metadata.uid);
    assert_eq!(stage.replicas().await, 0, "it sleeps on");
}

#[tokio::test(start_paused = true)]
async fn anything_that_can_be_scaled_can_sleep() {
    let stage = Stage::open().await;
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
    stage
        .define(serde_json::from_value::<CustomResourceDefinition>(definition).unwrap())
        .await;
    let named = kube::api::GroupVersionKind::gvk("example.com", "v1", "Lamp");
    let resource = ApiResource::from_gvk(&named);
    let lamps: Api<DynamicObject> = Api::default_namespaced_with(stage.client.clone(), &resource);
    let lamp = DynamicObject::new("web", &resource).data(json!({"spec": {"size": 4}}));
    lamps.create(&PostParams::default(), &lamp).await.unwrap();
    let mut service = stage::elasti_service();
    service["spec"]["scaleTargetRef"] =
        json!({"apiVersion": "example.com/v1", "kind": "Lamp", "name": "web"});
    stage.create::<ElastiService>(service).await;
    stage.verdicts.idle();
    stage.pass(MINUTE * 11).await;
    assert_eq!(lamps.get("web").await.unwrap().data["spec"]["size"], 0);
    stage.verdicts.busy();
    stage.pass(SECOND).await;
    assert_eq!(lamps.get("web").await.unwrap().data["spec"]["size"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_kubeelasti_left_awake_is_taken_over_and_sleeps_in_its_time() {
    let stage = Stage::open().await;
    let before: Service = stage.get("web").await.unwrap();
    // As 0.1.30 leaves things after a wake: its copy of the Service, its finalizer, its mode.
    let private = json!({
        "metadata": {"name": PRIVATE_NAME},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    });
    let was: Service = stage.create(private).await;
    let mut service = stage::elasti_service();
    service["metadata"]["finalizers"] = json!(["elasti.truefoundry.com/finalizer"]);
    stage.create::<ElastiService>(service).await;
    let status = json!({
        "mode": "serve", "lastReconciledTime": "2026-01-01T00:00:00.123456789Z",
        "lastScaledUpTime": stage.now(),
    });
    stage.patch_status::<ElastiService>("web", status).await;
    stage.verdicts.idle();
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.replicas().await, 3);
    let status = stage.status().await;
    assert_eq!(status.mode, Some(Mode::Serve));
    assert_eq!(status.ports[0].resolver_port, 20_000);
    let now: Service = stage.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(now.metadata.uid, was.metadata.uid);
    assert!(is_private(&now), "it can be seen by those who watch for it");
    stage.pass(MINUTE * 11).await;
    assert_eq!(stage.replicas().await, 0);
    let after: Service = stage.get("web").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
}
