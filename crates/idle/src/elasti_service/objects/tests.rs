//! The objects of services of all kinds.

use serde_json::{Value, json};

use super::*;

fn owner() -> ElastiService {
    let owner = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "1"}, "spec": {
        "service": "web",
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }});
    serde_json::from_value(owner).unwrap()
}

fn service(metadata: &Value, spec: &Value) -> Service {
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn resolver(address: &str) -> ResolverEndpoint {
    ResolverEndpoint {
        address: address.parse().unwrap(),
        pod: "resolver".to_owned(),
        node: Some("one".to_owned()),
        zone: None,
    }
}

/// Family and addresses of each slice.
fn made(families: &Value, resolvers: &[&str]) -> Vec<(String, String, Vec<String>)> {
    let public = service(&json!({"name": "web"}), &json!({"ipFamilies": families}));
    let port = ResolverPort {
        name: "http".to_owned(),
        port: 80,
        resolver_port: 20_000,
        service: None,
    };
    let resolvers: Vec<_> = resolvers.iter().map(|address| resolver(address)).collect();
    let slices = slices(&owner(), &public, &[port], &resolvers, &[]);
    let slices = slices.into_iter().map(|slice| {
        let endpoints = slice.endpoints.into_iter().flatten();
        let addresses = endpoints.flat_map(|endpoint| endpoint.addresses).collect();
        (slice.metadata.name.unwrap(), slice.address_type, addresses)
    });
    slices.collect()
}

#[test]
fn each_family_of_a_service_has_a_slice_with_addresses_of_its_own() {
    let (four, six) = (
        names::resolver_slice("web"),
        names::resolver_slice_v6("web"),
    );
    let both = ["10.0.0.1", "fd00::1"];
    let ipv4 = (four, "IPv4".to_owned(), vec!["10.0.0.1".to_owned()]);
    let ipv6 = (six, "IPv6".to_owned(), vec!["fd00::1".to_owned()]);
    assert_eq!(
        made(&json!(["IPv4", "IPv6"]), &both),
        [ipv4.clone(), ipv6.clone()]
    );
    assert_eq!(
        made(&json!(["IPv6", "IPv4"]), &both),
        [ipv6.clone(), ipv4.clone()]
    );
    assert_eq!(made(&json!(["IPv6"]), &both), [ipv6]);
    // A Service without ipFamilies is of IPv4.
    assert_eq!(made(&Value::Null, &both), [ipv4]);
    let (_, _, addresses) = &made(&json!(["IPv6"]), &["10.0.0.1"])[0];
    assert!(addresses.is_empty(), "none of the other family");
}

#[test]
fn a_resolver_with_two_addresses_is_one_with_each() {
    let slice = |kind: &str, address: &str| -> EndpointSlice {
        let slice = json!({"metadata": {}, "addressType": kind, "endpoints": [{
            "addresses": [address], "targetRef": {"kind": "Pod", "name": "resolver-1"},
        }, {"addresses": ["10.0.0.9"], "conditions": {"ready": false}}]});
        serde_json::from_value(slice).unwrap()
    };
    let found = resolver_endpoints([&slice("IPv4", "10.0.0.1"), &slice("IPv6", "fd00::1")]);
    let found: Vec<_> = found
        .iter()
        .map(|it| (&*it.pod, it.address.to_string()))
        .collect();
    let both = ["10.0.0.1", "fd00::1"].map(|it| ("resolver-1", it.to_owned()));
    assert_eq!(found, both);
}

#[test]
fn every_port_of_tcp_is_stood_in_for_and_the_private_service_has_them_all() {
    let ports = json!([
        {"name": "http", "port": 80, "targetPort": "web", "nodePort": 30_080, "appProtocol": "http"},
        {"name": "grpc", "port": 9090, "protocol": "TCP"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]);
    let public = service(
        &json!({"name": "web"}),
        &json!({"type": "NodePort", "selector": {"app": "web"}, "ports": ports}),
    );
    let tcp = [("http".to_owned(), 80), ("grpc".to_owned(), 9090)];
    assert_eq!(super::ports(&public), tcp);
    let private = private(&owner(), &public, None).spec.unwrap();
    let wanted = json!([
        {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP", "appProtocol": "http"},
        {"name": "grpc", "port": 9090, "targetPort": 9090, "protocol": "TCP"},
        {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
    ]);
    assert_eq!(json!(private.ports), wanted);
    assert_eq!(private.type_.as_deref(), Some("ClusterIP"));
}

#[test]
fn labels_are_copied_and_annotations_for_other_tools_are_not() {
    let labels = json!({
        "team": "shop", "app.kubernetes.io/managed-by": "Helm",
        "argocd.argoproj.io/instance": "shop",
    });
    let annotations = json!({
        "external-dns.alpha.kubernetes.io/hostname": "shop.example.com",
        "service.kubernetes.io/topology-mode": "Auto",
    });
    let metadata = json!({"name": "web", "labels": labels, "annotations": annotations});
    let public = service(&metadata, &json!({"selector": {"app": "web"}}));
    let fresh = private(&owner(), &public, None);
    assert_eq!(
        json!(fresh.labels()),
        json!({"team": "shop", PRIVATE: "true"})
    );
    let topology = json!({"service.kubernetes.io/topology-mode": "Auto"});
    assert_eq!(json!(fresh.annotations()), topology);
    // Annotations that KubeElasti copied are removed, those of others stay.
    let mut old = public.clone();
    labels_of(&mut old).insert("added".to_owned(), "later".to_owned());
    let taken_over = private(&owner(), &public, Some(&old));
    let wanted = json!({"team": "shop", "added": "later", PRIVATE: "true"});
    assert_eq!(json!(taken_over.labels()), wanted);
    assert_eq!(json!(taken_over.annotations()), topology);
    assert_eq!(private(&owner(), &public, Some(&taken_over)), taken_over);
}

fn labels_of(service: &mut Service) -> &mut BTreeMap<String, String> {
    labels(&mut service.metadata)
}
