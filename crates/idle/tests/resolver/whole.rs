//! A resolver as its process runs it, from the server's objects to its end.

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
        drain::{Ending, Patience},
        follow::Follow,
        http::Naming,
        lanes::{Lanes, Threads},
        net,
        routes::{Defaults, Tables},
        run,
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

use crate::scene::{STUCK, Wakes, read_until, until};

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
        // A kind that was just defined is served a moment later.
        while services.create(&create, &object).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(STUCK, created)
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

/// A connection, as soon as somebody takes it.
async fn open(port: u16) -> TcpStream {
    let connect = async {
        loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Ok(client) => return client,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(STUCK, connect)
        .await
        .expect("never open")
}

#[tokio::test]
async fn it_listens_as_the_server_says_and_ends_with_an_answer_for_everybody() {
    let options = Options::new(Environment::rehearsal(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let free = net::bind(None, 0).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    asleep(&client, port).await;

    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let (publish, tables) = Tables::new();
    let follow = Follow::new(&client, &watches, &[], Defaults::default(), publish).unwrap();
    let waker = Arc::new(Wakes::default());
    let telemetry = Telemetry::default();
    let resolver = Resolver::new(clock, tables, waker.clone(), Naming::default(), &telemetry);
    let shared = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let everyone = shared.local_addr().unwrap();
    let ending = Ending::default();
    let patience = Patience {
        lag: Duration::from_millis(50),
        held: Duration::from_millis(50),
        rest: Duration::from_mins(1),
    };
    let lanes = Lanes::new(resolver.clone(), Threads::start(2).unwrap());
    let service = run::service(lanes, follow, shared, ending.clone(), patience);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let grounds = CancellationToken::new();
    tasks.spawn(watching.run(grounds.clone()));
    let running = tasks.spawn(service.run(stop.clone()));

    until(|| resolver.tables.now().route(port).is_some()).await;
    let mut by_port = open(port).await;
    let mut by_name = TcpStream::connect(everyone).await.unwrap();
    let asked = b"GET / HTTP/1.1\r\nHost: cart.default.svc\r\n\r\n";
    by_port.write_all(asked).await.unwrap();
    by_name.write_all(asked).await.unwrap();
    until(|| {
        let queued = resolver.holds.all_queued();
        queued.values().map(|queued| queued.requests).sum::<usize>() == 2
    })
    .await;
    assert_eq!(waker.count(), 1);

    stop.cancel();
    for client in [&mut by_port, &mut by_name] {
        let answer = read_until(client, "ResolverEnding").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
    tokio::time::timeout(STUCK, running)
        .await
        .expect("no end")
        .unwrap();
    assert!(ending.has_begun());
    assert!(TcpStream::connect(everyone).await.is_err());
    grounds.cancel();
}
