//! Annotations, as values and against an API server in the test's own process.

mod cluster;
mod parsing;
mod rights;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Request;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{Event, Namespace, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use neap_kit::{apply::Object, clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{annotations::*, *};
use crate::api::{ElastiService, ElastiServiceSpec, TriggerKind, annotations::OFF};
use cluster::{TestCluster, deployment, public};

#[tokio::test(start_paused = true)]
async fn an_annotated_service_gets_an_elasti_service_until_the_annotation_goes() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    assert!(cluster.elasti_service("shop").await.is_none());
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    let elasti_service = cluster.elasti_service("shop").await.unwrap();
    assert_eq!(elasti_service.spec.service, "shop");
    assert_eq!(elasti_service.spec.scale_target_ref.name, "web");
    assert_eq!(elasti_service.spec.triggers[0].kind, TriggerKind::Requests);
    assert_eq!(
        elasti_service.metadata.owner_references.as_ref().unwrap()[0].name,
        "shop"
    );
    let cooldown = async || {
        let found = cluster.elasti_service("shop").await;
        found.unwrap().spec.cooldown_period
    };
    // Changes of the annotations are applied, and changes of the ElastiService are reverted.
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "1m"}))
        .await;
    assert_eq!(cooldown().await, Some(60));
    let parameters = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"cooldownPeriod": 5}}));
    let services = cluster.api::<ElastiService>();
    services.patch("shop", &parameters, &change).await.unwrap();
    cluster.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(cooldown().await, Some(60));
    // An invalid annotation is reported, and changes nothing.
    cluster
        .annotate::<Service>("shop", json!({COOLDOWN: "soon"}))
        .await;
    assert_eq!(cooldown().await, Some(60));
    let events = cluster.events().await;
    let refused = events
        .iter()
        .find(|(reason, _)| reason == "InvalidAnnotation");
    assert!(refused.unwrap().1.contains(COOLDOWN), "{events:?}");
    cluster
        .annotate::<Service>("shop", json!({ENABLED: null, COOLDOWN: null}))
        .await;
    assert!(cluster.elasti_service("shop").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_annotated_deployment_uses_the_service_that_selects_it() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Deployment>("web", json!({ENABLED: "true"}))
        .await;
    let elasti_service = cluster.elasti_service("shop").await.unwrap();
    assert_eq!(elasti_service.spec.scale_target_ref.kind, "Deployment");
    assert_eq!(
        elasti_service.metadata.owner_references.unwrap()[0].kind,
        "Deployment"
    );
    // If two match, one has to be named.
    cluster.create::<Service>(public("other")).await;
    cluster
        .annotate::<Deployment>("web", json!({COOLDOWN: "1m"}))
        .await;
    let events = cluster.events().await;
    assert!(
        events.iter().any(|(_, message)| message.contains(SERVICE)),
        "{events:?}"
    );
    cluster
        .annotate::<Deployment>("web", json!({SERVICE: "other"}))
        .await;
    assert_eq!(
        cluster
            .elasti_service("other")
            .await
            .unwrap()
            .spec
            .cooldown_period,
        Some(60)
    );
    assert!(
        cluster.elasti_service("shop").await.is_none(),
        "it names another one now"
    );
}

#[tokio::test(start_paused = true)]
async fn an_elasti_service_of_a_user_takes_precedence() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    assert!(cluster.elasti_service("shop").await.is_some());
    let written = json!({"metadata": {"name": "by-hand"}, "spec": {
        "service": "shop", "cooldownPeriod": 30,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }});
    cluster.create::<ElastiService>(written).await;
    cluster.clock.sleep(Duration::from_secs(5)).await;
    assert!(cluster.elasti_service("shop").await.is_none());
    assert_eq!(cluster.events().await[0].0, "AlreadyThere");
    let by_hand = cluster.elasti_service("by-hand").await.unwrap();
    assert_eq!(by_hand.spec.cooldown_period, Some(30));
}

#[tokio::test(start_paused = true)]
async fn no_elasti_service_is_created_in_a_namespace_that_is_off() {
    let cluster = TestCluster::open().await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.create::<Service>(public("shop")).await;
    cluster
        .annotate::<Service>("shop", json!({ENABLED: "true"}))
        .await;
    for namespace in ["elasti", "default"] {
        cluster
            .annotate_namespace(namespace, json!({OFF: "true"}))
            .await;
        assert!(
            cluster.elasti_service("shop").await.is_some(),
            "an existing one stays"
        );
        let services = cluster.api::<ElastiService>();
        let parameters = DeleteParams::default();
        services.delete("shop", &parameters).await.unwrap();
        cluster.clock.sleep(Duration::from_mins(2)).await;
        assert!(
            cluster.elasti_service("shop").await.is_none(),
            "off in {namespace}"
        );
        cluster
            .annotate_namespace(namespace, json!({OFF: null}))
            .await;
        assert!(cluster.elasti_service("shop").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_is_reported_and_retried() {
    let cluster = TestCluster::open().await;
    cluster.create::<Service>(public("web")).await;
    cluster.create::<Deployment>(deployment("web")).await;
    cluster.blind.store(true, Ordering::SeqCst);
    let on = json!({ENABLED: "true"});
    cluster.annotate::<Service>("web", on).await;
    assert!(cluster.elasti_service("web").await.is_none());
    let events = cluster.events().await;
    assert_eq!(events[0].0, "NotRead", "{events:?}");
    cluster.blind.store(false, Ordering::SeqCst);
    cluster.clock.sleep(Duration::from_mins(1)).await;
    assert!(cluster.elasti_service("web").await.is_some());
}
