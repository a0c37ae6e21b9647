use serde_json::{Value, json};

use super::*;

fn service(namespace: &str, name: &str, address: &str) -> Service {
    let value =
        json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": address}});
    serde_json::from_value(value).unwrap()
}

fn slice(endpoints: &Value) -> Arc<EndpointSlice> {
    let value = json!({"addressType": "IPv4", "endpoints": endpoints});
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The file without the lines that every pod has.
fn lines(pod: Value, services: &[Service], of: &str, slices: &[Arc<EndpointSlice>]) -> Vec<String> {
    let pod = serde_json::from_value(pod).unwrap();
    let found = |key: &Key| {
        if key.name() == of {
            slices.to_vec()
        } else {
            Vec::new()
        }
    };
    let text = hosts_file(&pod, services.iter(), found);
    text.lines().skip(2).map(str::to_owned).collect()
}

#[test]
fn a_service_has_all_its_names_and_the_short_one_in_its_namespace() {
    let pod =
        json!({"metadata": {"name": "p", "namespace": "shop"}, "status": {"podIP": "127.1.1.1"}});
    let services = [
        service("shop", "db", "127.1.128.1"),
        service("other", "db", "127.1.128.2"),
        service("shop", "none", "None"),
    ];
    let expected = [
        "127.1.1.1\tp",
        "127.1.128.1\tdb.shop.svc.cluster.local db.shop.svc db.shop db",
        "127.1.128.2\tdb.other.svc.cluster.local db.other.svc db.other",
    ];
    assert_eq!(lines(pod, &services, "", &[]), expected);
}

#[test]
fn a_headless_service_has_the_addresses_of_its_ready_pods() {
    let slices = [slice(&json!([
        {"addresses": ["127.1.1.2"], "hostname": "web-0", "conditions": {"ready": true}},
        {"addresses": ["127.1.1.3"], "conditions": {}},
        {"addresses": ["127.1.1.4"], "hostname": "web-2", "conditions": {"ready": false}},
    ]))];
    let pod = |namespace: &str| json!({"metadata": {"name": "p", "namespace": namespace}});
    let services = [service("shop", "web", "None")];
    let here = lines(pod("shop"), &services, "web", &slices);
    let expected = [
        "127.1.1.2\tweb.shop.svc.cluster.local web.shop.svc web.shop web \
         web-0.web.shop.svc.cluster.local web-0.web.shop.svc web-0.web.shop web-0.web",
        "127.1.1.3\tweb.shop.svc.cluster.local web.shop.svc web.shop web",
    ];
    assert_eq!(here, expected);
    let there = lines(pod("other"), &services, "web", &slices);
    let expected = [
        "127.1.1.2\tweb.shop.svc.cluster.local web.shop.svc web.shop \
         web-0.web.shop.svc.cluster.local web-0.web.shop.svc web-0.web.shop",
        "127.1.1.3\tweb.shop.svc.cluster.local web.shop.svc web.shop",
    ];
    assert_eq!(there, expected);
}

#[test]
fn a_pod_has_its_own_long_name_and_its_aliases() {
    let pod = json!({
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"containers": [], "hostname": "web-0", "subdomain": "web", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["old", "older"]}]},
        "status": {"podIP": "127.1.1.1"},
    });
    let expected = [
        "127.1.1.1\tweb-0.web.shop.svc.cluster.local web-0",
        "10.0.0.1\told older",
    ];
    assert_eq!(lines(pod, &[], "", &[]), expected);
}
