use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use neap_kit::{clock::Clock, key::Key};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{api::names, resolver::routes::Tables};

/// A server in this process, a table that follows it, and time that passes at once.
struct Scene {
    client: Client,
    clock: Clock,
    tables: Tables,
    _stop: tokio_util::sync::DropGuard,
    _pocket: Pocket,
}

impl Scene {
    async fn open(namespaces: &[String]) -> Self {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = ElastiService::crd();
        definitions
            .create(&PostParams::default(), &crd)
            .await
            .unwrap();
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        clock.sleep(Duration::from_secs(5)).await;
        let (watches, watching) = Watches::new(clock);
        let (publish, tables) = Tables::new();
        let defaults = Defaults::default();
        let follow = Follow::new(&client, &watches, namespaces, defaults, publish).unwrap();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(follow.run(stop.clone()));
        Self {
            client,
            clock,
            tables,
            _stop: stop.drop_guard(),
            _pocket: pocket,
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn service(&self, name: &str, resolver_port: u16) {
        let object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": {"name": name},
            "spec": {
                "service": name,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            },
        });
        let api: Api<ElastiService> = self.api();
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        let status = json!({"status": {"ports": [
            {"name": "http", "port": 80, "resolverPort": resolver_port},
        ]}});
        let patch = Patch::Merge(&status);
        let parameters = PatchParams::default();
        api.patch_status(name, &parameters, &patch).await.unwrap();
    }

    async fn slice(&self, service: &str, name: &str, labels: Value, address: &str) {
        let mut labels = labels;
        labels["kubernetes.io/service-name"] = names::private_service(service).into();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        });
        let api: Api<EndpointSlice> = self.api();
        let slice = serde_json::from_value(slice).unwrap();
        api.create(&PostParams::default(), &slice).await.unwrap();
    }

    /// The table once everything that was written is in it.
    async fn table(&self) -> Arc<Table> {
        self.clock.sleep(Duration::from_secs(1)).await;
        self.tables.now()
    }
}

fn pods(table: &Table, service: &str) -> Vec<String> {
    let pods = table.pods(&Key::new("default", service));
    pods.values().flatten().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_table_follows_what_is_in_the_server() {
    let scene = Scene::open(&[]).await;
    assert!(scene.table().await.routes().is_empty());
    scene.service("cart", 20000).await;
    let table = scene.table().await;
    assert_eq!(
        table.route(20000).unwrap().service.key,
        Key::new("default", "cart")
    );
    assert!(pods(&table, "cart").is_empty());
    // Slices of others are not even asked for.
    scene.slice("cart", "other", json!({}), "10.0.0.9").await;
    scene
        .slice("cart", "own", json!({PRIVATE: "true"}), "10.0.0.1")
        .await;
    assert_eq!(pods(&*scene.table().await, "cart"), ["10.0.0.1:8080"]);
    let slices: Api<EndpointSlice> = scene.api();
    slices
        .delete("own", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(pods(&*scene.table().await, "cart").is_empty());
    let services: Api<ElastiService> = scene.api();
    services
        .delete("cart", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(scene.table().await.route(20000).is_some());
    scene.clock.sleep(Duration::from_secs(30)).await;
    assert!(scene.table().await.routes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_still_led_to_a_service_that_is_gone_is_carried_to_its_last_pods() {
    let scene = Scene::open(&[]).await;
    scene.service("cart", 20000).await;
    scene
        .slice("cart", "own", json!({PRIVATE: "true"}), "10.0.0.1")
        .await;
    assert_eq!(pods(&*scene.table().await, "cart"), ["10.0.0.1:8080"]);
    let services: Api<ElastiService> = scene.api();
    let at_once = kube::api::DeleteParams::default();
    services.delete("cart", &at_once).await.unwrap();
    scene.clock.sleep(Duration::from_secs(1)).await;
    let slices: Api<EndpointSlice> = scene.api();
    slices.delete("own", &at_once).await.unwrap();
    let table = scene.table().await;
    assert_eq!(pods(&table, "cart"), ["10.0.0.1:8080"]);
    assert!(table.route(20000).unwrap().service.out_of_path);
    // One that has the name next has ports and pods of its own, and the old port leads to them.
    scene.service("cart", 20001).await;
    let table = scene.table().await;
    assert!(table.route(20000).is_some());
    assert!(!table.route(20001).unwrap().service.out_of_path);
    assert!(pods(&table, "cart").is_empty());
    scene.clock.sleep(Duration::from_secs(30)).await;
    let table = scene.table().await;
    assert!(table.route(20000).is_none());
    assert!(table.route(20001).is_some());
}

#[tokio::test(start_paused = true)]
async fn only_namespaces_that_were_named_are_followed() {
    let scene = Scene::open(&["default".to_owned()]).await;
    scene.service("cart", 20000).await;
    assert!(scene.table().await.route(20000).is_some());
    let scene = Scene::open(&["elsewhere".to_owned()]).await;
    scene.service("cart", 20000).await;
    assert!(scene.table().await.route(20000).is_none());
}
