//! A resolver as a component of its process, from the objects of the API server to its shutdown.

use std::{sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use neap_idle::{
    api::ElastiService,
    resolver::{
        Resolver,
        drain::{DrainState, DrainTimeouts},
        http::HostRouting,
        net,
        route_watcher::RouteWatcher,
        routes::{RouteDefaults, RouteTableReader},
        run,
        workers::{ConnectionWorkers, WorkerThreads},
    },
};
use neap_kit::{clock::Clock, telemetry::Telemetry, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::fixture::{TEST_TIMEOUT, WakeCounter, read_until, until};

async fn asleep(client: &Client, resolver_port: u16) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let create = PostParams::default();
    let crd = ElastiService::crd();
    definitions.create(&create, &crd).await.unwrap();
    let services: Api<ElastiService> = Api::namespaced(client.clone(), "default");
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"name": "cart"},
        "spec": {
            "service": "cart",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
        },
    });
    let object = serde_json::from_value(object).unwrap();
    let created = async {
        // The API server serves a new definition a moment later.
        while services.create(&create, &object).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, created)
        .await
        .expect("never served");
    let port = json!({"name": "http", "port": 80, "resolverPort": resolver_port});
    let status = json!({"status": {"ports": [port]}});
    let patch = Patch::Merge(&status);
    let parameters = PatchParams::default();
    services
        .patch_status("cart", &parameters, &patch)
        .await
        .unwrap();
}

/// A connection, as soon as the port is open.
async fn open(port: u16) -> TcpStream {
    let connect = async {
        loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Ok(client) => return client,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, connect)
        .await
        .expect("never open")
}

#[tokio::test]
async fn a_resolver_opens_the_ports_of_the_table_and_answers_held_requests_at_shutdown() {
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let free = net::bind(None, 0).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    asleep(&client, port).await;

    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let (publish, route_table) = RouteTableReader::new();
    let follow =
        RouteWatcher::new(&client, &watches, &[], RouteDefaults::default(), publish).unwrap();
    let waker = Arc::new(WakeCounter::default());
    let telemetry = Telemetry::default();
    let resolver = Resolver::new(
        clock,
        route_table,
        waker.clone(),
        HostRouting::default(),
        &telemetry,
    );
    let shared = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let everyone = shared.local_addr().unwrap();
    let ending = DrainState::default();
    let timeouts = DrainTimeouts {
        data_plane_lag: Duration::from_millis(50),
        held_requests: Duration::from_millis(50),
        in_flight: Duration::from_mins(1),
    };
    let workers = ConnectionWorkers::new(resolver.clone(), WorkerThreads::start(2).unwrap());
    let service = run::component(workers, follow, shared, ending.clone(), timeouts);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let grounds = CancellationToken::new();
    tasks.spawn(watching.run(grounds.clone()));
    let running = tasks.spawn(service.run(stop.clone()));

    until(|| resolver.route_table.current().route(port).is_some()).await;
    let mut by_port = open(port).await;
    let mut by_name = TcpStream::connect(everyone).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: cart.default.svc\r\n\r\n";
    by_port.write_all(request).await.unwrap();
    by_name.write_all(request).await.unwrap();
    until(|| {
        let queued = resolver.held_requests.queue_sizes();
        queued.values().map(|queued| queued.requests).sum::<usize>() == 2
    })
    .await;
    // The wake is requested in a task of its own.
    until(|| waker.count() == 1).await;

    stop.cancel();
    for client in [&mut by_port, &mut by_name] {
        let answer = read_until(client, "ResolverEnding").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
    tokio::time::timeout(TEST_TIMEOUT, running)
        .await
        .expect("no end")
        .unwrap();
    assert!(ending.is_draining());
    assert!(TcpStream::connect(everyone).await.is_err());
    grounds.cancel();
}
