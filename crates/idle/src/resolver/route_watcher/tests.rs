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
use crate::{api::names, resolver::routes::RouteTableReader};

/// An API server in this process and a route watcher of it, under a paused clock.
struct WatcherFixture {
    client: Client,
    clock: Clock,
    route_table: RouteTableReader,
    _stop: tokio_util::sync::DropGuard,
    _pocket: Pocket,
}

impl WatcherFixture {
    async fn open(namespaces: &[String]) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
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
        let (publish, route_table) = RouteTableReader::new();
        let defaults = RouteDefaults::default();
        let watcher = RouteWatcher::new(&client, &watches, namespaces, defaults, publish).unwrap();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(watching.run(stop.clone()));
        tasks.spawn(watcher.run(stop.clone()));
        Self {
            client,
            clock,
            route_table,
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

    /// The table after all writes so far are in it.
    async fn table(&self) -> Arc<RouteTable> {
        self.clock.sleep(Duration::from_secs(1)).await;
        self.route_table.current()
    }
}

fn pods(table: &RouteTable, service: &str) -> Vec<String> {
    let pods = table.pods(&Key::new("default", service));
    pods.values().flatten().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_table_follows_the_objects_of_the_server() {
    let fixture = WatcherFixture::open(&[]).await;
    assert!(fixture.table().await.routes().is_empty());
    fixture.service("cart", 20000).await;
    let table = fixture.table().await;
    assert_eq!(
        table.route(20000).unwrap().service.key,
        Key::new("default", "cart")
    );
    assert!(pods(&table, "cart").is_empty());
    // EndpointSlices without the label are not watched.
    fixture.slice("cart", "other", json!({}), "10.0.0.9").await;
    fixture
        .slice(
            "cart",
            "own",
            json!({PRIVATE_SERVICE_LABEL: "true"}),
            "10.0.0.1",
        )
        .await;
    assert_eq!(pods(&*fixture.table().await, "cart"), ["10.0.0.1:8080"]);
    let slices: Api<EndpointSlice> = fixture.api();
    slices
        .delete("own", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(pods(&*fixture.table().await, "cart").is_empty());
    let services: Api<ElastiService> = fixture.api();
    services
        .delete("cart", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    assert!(fixture.table().await.route(20000).is_some());
    fixture.clock.sleep(Duration::from_secs(30)).await;
    assert!(fixture.table().await.routes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_removed_service_are_forwarded_to_its_last_pods() {
    let fixture = WatcherFixture::open(&[]).await;
    fixture.service("cart", 20000).await;
    fixture
        .slice(
            "cart",
            "own",
            json!({PRIVATE_SERVICE_LABEL: "true"}),
            "10.0.0.1",
        )
        .await;
    assert_eq!(pods(&*fixture.table().await, "cart"), ["10.0.0.1:8080"]);
    let services: Api<ElastiService> = fixture.api();
    let at_once = kube::api::DeleteParams::default();
    services.delete("cart", &at_once).await.unwrap();
    fixture.clock.sleep(Duration::from_secs(1)).await;
    let slices: Api<EndpointSlice> = fixture.api();
    slices.delete("own", &at_once).await.unwrap();
    let table = fixture.table().await;
    assert_eq!(pods(&table, "cart"), ["10.0.0.1:8080"]);
    assert!(table.route(20000).unwrap().service.out_of_path);
    // A new service of the same name has ports and pods of its own, and the old port leads to them.
    fixture.service("cart", 20001).await;
    let table = fixture.table().await;
    assert!(table.route(20000).is_some());
    assert!(!table.route(20001).unwrap().service.out_of_path);
    assert!(pods(&table, "cart").is_empty());
    fixture.clock.sleep(Duration::from_secs(30)).await;
    let table = fixture.table().await;
    assert!(table.route(20000).is_none());
    assert!(table.route(20001).is_some());
}

#[tokio::test(start_paused = true)]
async fn only_the_listed_namespaces_are_watched() {
    let fixture = WatcherFixture::open(&["default".to_owned()]).await;
    fixture.service("cart", 20000).await;
    assert!(fixture.table().await.route(20000).is_some());
    let fixture = WatcherFixture::open(&["elsewhere".to_owned()]).await;
    fixture.service("cart", 20000).await;
    assert!(fixture.table().await.route(20000).is_none());
}
