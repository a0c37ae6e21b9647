//! Dual-stack Services; need a server with an address range for each family.

use kube::api::ListParams;
use neap_idle::api::names;
use serde_json::{Value, json};

use crate::test_namespace::{SERVICE, SLICE, TestNamespace};

/// The addresses in a Service's EndpointSlices of one family that the EndpointSlice controller wrote.
async fn addresses(cluster: &TestNamespace, service: &str, family: &str) -> Vec<Value> {
    let labels = format!(
        "kubernetes.io/service-name={service},endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io"
    );
    let slices = cluster.api(SLICE);
    let slices = slices.list(&ListParams::default().labels(&labels)).await;
    let slices = slices.unwrap().items.into_iter();
    let of_family = slices.filter(|slice| slice.data["addressType"] == family);
    let endpoints = of_family.filter_map(|slice| slice.data["endpoints"].as_array().cloned());
    let mut found: Vec<_> = endpoints
        .flatten()
        .flat_map(|one| one["addresses"].as_array().cloned().unwrap_or_default())
        .collect();
    found.sort_by_key(Value::to_string);
    found
}

/// Waits until the operator's EndpointSlice of this name has the addresses of both resolvers.
async fn leads_to_resolvers(cluster: &TestNamespace, name: &str, family: &str) {
    let leads = async || {
        let slice = cluster.api(SLICE).get(name).await.unwrap();
        assert_eq!(slice.data["addressType"], family);
        assert_eq!(slice.data["ports"].as_array().unwrap().len(), 2);
        let endpoints = slice.data["endpoints"].as_array().cloned();
        let endpoints = endpoints.unwrap_or_default().into_iter();
        let mut ours: Vec<_> = endpoints.map(|one| one["addresses"][0].clone()).collect();
        ours.sort_by_key(Value::to_string);
        ours.len() == 2 && ours == addresses(cluster, "resolver", family).await
    };
    cluster.until(leads).await;
}

#[tokio::test]
async fn a_service_of_both_families_has_a_slice_for_each() {
    let cluster = TestNamespace::open("idle-dual", false).await;
    cluster
        .create_workloads(&json!({"ipFamilyPolicy": "RequireDualStack"}))
        .await;
    cluster.declare("web").await;
    cluster.until(async || cluster.is_asleep("web").await).await;
    leads_to_resolvers(&cluster, &names::resolver_slice("web"), "IPv4").await;
    leads_to_resolvers(&cluster, &names::resolver_slice_v6("web"), "IPv6").await;
    let private = names::private_service("web");
    let private = cluster.api(SERVICE).get(&private).await.unwrap();
    assert_eq!(private.data["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    cluster.wake_and_delete().await;
}

#[tokio::test]
async fn an_ipv6_service_has_only_an_ipv6_slice() {
    let cluster = TestNamespace::open("idle-six", false).await;
    let only = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]});
    cluster.create_workloads(&only).await;
    cluster.declare("web").await;
    cluster.until(async || cluster.is_asleep("web").await).await;
    leads_to_resolvers(&cluster, &names::resolver_slice_v6("web"), "IPv6").await;
    let four = names::resolver_slice("web");
    assert!(cluster.api(SLICE).get_opt(&four).await.unwrap().is_none());
    cluster.wake_and_delete().await;
}

/// A Service that gets a second family while it sleeps.
#[tokio::test]
async fn an_added_family_gets_a_slice() {
    let cluster = TestNamespace::open("idle-added", false).await;
    cluster
        .create_workloads(&json!({"ipFamilyPolicy": "SingleStack"}))
        .await;
    cluster.declare("web").await;
    cluster.until(async || cluster.is_asleep("web").await).await;
    let six = names::resolver_slice_v6("web");
    assert!(cluster.api(SLICE).get_opt(&six).await.unwrap().is_none());
    let both = json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}});
    cluster.patch(SERVICE, "web", both).await;
    let added = async || cluster.api(SLICE).get_opt(&six).await.unwrap().is_some();
    cluster.until(added).await;
    leads_to_resolvers(&cluster, &six, "IPv6").await;
    cluster.wake_and_delete().await;
}
