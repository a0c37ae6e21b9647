//! Services of both families. Only on a server with a range of addresses for each.

use kube::api::ListParams;
use neap_idle::api::names;
use serde_json::{Value, json};

use crate::stage::{SERVICE, SLICE, Stage};

/// The addresses of the ready endpoints of a Service's slices of a family that somebody else made.
async fn addresses(stage: &Stage, service: &str, family: &str) -> Vec<Value> {
    let labels = format!(
        "kubernetes.io/service-name={service},endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io"
    );
    let slices = stage.api(SLICE);
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

/// Waits until our slice of that name has the addresses of both resolvers, of its family.
async fn leads_to_resolvers(stage: &Stage, name: &str, family: &str) {
    let leads = async || {
        let slice = stage.api(SLICE).get(name).await.unwrap();
        assert_eq!(slice.data["addressType"], family);
        assert_eq!(slice.data["ports"].as_array().unwrap().len(), 2);
        let endpoints = slice.data["endpoints"].as_array().cloned();
        let endpoints = endpoints.unwrap_or_default().into_iter();
        let mut ours: Vec<_> = endpoints.map(|one| one["addresses"][0].clone()).collect();
        ours.sort_by_key(Value::to_string);
        ours.len() == 2 && ours == addresses(stage, "resolver", family).await
    };
    stage.until(leads).await;
}

#[tokio::test]
async fn a_service_of_both_families_has_a_slice_for_each() {
    let stage = Stage::open("idle-dual", false).await;
    stage
        .cast(&json!({"ipFamilyPolicy": "RequireDualStack"}))
        .await;
    stage.declare("web").await;
    stage.until(async || stage.is_asleep("web").await).await;
    leads_to_resolvers(&stage, &names::resolver_slice("web"), "IPv4").await;
    leads_to_resolvers(&stage, &names::resolver_slice_v6("web"), "IPv6").await;
    let private = names::private_service("web");
    let private = stage.api(SERVICE).get(&private).await.unwrap();
    assert_eq!(private.data["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    stage.wakes_and_goes().await;
}

#[tokio::test]
async fn a_service_of_the_sixth_version_alone_has_no_other_slice() {
    let stage = Stage::open("idle-six", false).await;
    let only = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]});
    stage.cast(&only).await;
    stage.declare("web").await;
    stage.until(async || stage.is_asleep("web").await).await;
    leads_to_resolvers(&stage, &names::resolver_slice_v6("web"), "IPv6").await;
    let four = names::resolver_slice("web");
    assert!(stage.api(SLICE).get_opt(&four).await.unwrap().is_none());
    stage.wakes_and_goes().await;
}

/// One that is given a second family while it sleeps.
#[tokio::test]
async fn a_family_that_is_added_is_followed() {
    let stage = Stage::open("idle-added", false).await;
    stage.cast(&json!({"ipFamilyPolicy": "SingleStack"})).await;
    stage.declare("web").await;
    stage.until(async || stage.is_asleep("web").await).await;
    let six = names::resolver_slice_v6("web");
    assert!(stage.api(SLICE).get_opt(&six).await.unwrap().is_none());
    let both = json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}});
    stage.patch(SERVICE, "web", both).await;
    let added = async || stage.api(SLICE).get_opt(&six).await.unwrap().is_some();
    stage.until(added).await;
    leads_to_resolvers(&stage, &six, "IPv6").await;
    stage.wakes_and_goes().await;
}
