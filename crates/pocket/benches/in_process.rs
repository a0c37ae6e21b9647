//! Objects per second that in-process clients create.
//!
//! Prints its figures as one JSON object, for `cargo xtask bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and ends where it is surprised"
)]

use std::{collections::BTreeMap, time::Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::json;
use tokio::task::JoinSet;

const CLIENTS: usize = 16;
const OBJECTS_PER_CLIENT: usize = 5000;
/// With its metadata, such an object takes 0.7 KB as JSON.
const PADDING: usize = 300;
/// The best of several runs counts: a shared machine can only make a run slower.
const RUNS: usize = 5;

#[tokio::main]
async fn main() {
    let mut best: f64 = 0.0;
    for _ in 0..RUNS {
        best = best.max(run().await);
    }
    println!("{}", json!({"creates": best}));
}

async fn run() -> f64 {
    let pocket = Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap();
    let mut clients = JoinSet::new();
    let start = now();
    for client in 0..CLIENTS {
        let maps = Api::default_namespaced(Client::new(pocket.service(), "default"));
        clients.spawn(create(maps, client));
    }
    clients.join_all().await;
    let seconds = start.elapsed().as_secs_f64();
    pocket.close();
    (CLIENTS * OBJECTS_PER_CLIENT) as f64 / seconds
}

async fn create(maps: Api<ConfigMap>, client: usize) {
    for number in 0..OBJECTS_PER_CLIENT {
        let map = map(&format!("object-{client}-{number}"), number);
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
}

fn map(name: &str, number: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([
            ("number".to_owned(), number.to_string()),
            ("padding".to_owned(), "x".repeat(PADDING)),
        ])),
        ..ConfigMap::default()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures from outside; no product code sees it"
)]
fn now() -> Instant {
    Instant::now()
}
