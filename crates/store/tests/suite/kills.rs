//! A database that dies while it is written to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use neap_store::{Scope, Store};
use tokio::task::JoinSet;

use crate::{contract::key, crowd::increment, options, postgres::Postgres};

const KILLS: usize = 10;
const WRITERS: usize = 4;
/// How many increments are acknowledged between two kills.
const BETWEEN: i64 = 20;

/// No acknowledged increment is lost over ten kills, and one whose answer was lost counts at most once.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_database_acknowledged_is_there() {
    let test = "what_a_killed_database_acknowledged_is_there";
    let Some(mut postgres) = Postgres::start(test) else {
        return;
    };
    let store = open(&postgres.address()).await;
    let (acknowledged, unknown) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let ended = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, ended) = (store.clone(), ended.clone());
        let (acknowledged, unknown) = (acknowledged.clone(), unknown.clone());
        writers.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                match increment(&store, "counter").await {
                    Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
                    Err(error) if error.is_transient() => unknown.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                };
                tokio::task::yield_now().await;
            }
        });
    }
    for kill in 1..=KILLS {
        let target = acknowledged.load(Ordering::Relaxed) + BETWEEN;
        while acknowledged.load(Ordering::Relaxed) < target {
            tokio::task::yield_now().await;
        }
        if kill % 2 == 0 {
            eprintln!("kill {kill} after {target}");
        }
        postgres.kill();
        postgres.run();
    }
    ended.store(true, Ordering::Relaxed);
    writers.join_all().await;
    let last = loop {
        match store.get(Scope::Everywhere, &key("counter")).await {
            Ok(document) => break document.unwrap().body["n"].as_i64().unwrap(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let (acknowledged, unknown) = (
        acknowledged.load(Ordering::Relaxed),
        unknown.load(Ordering::Relaxed),
    );
    assert!(
        (acknowledged..=acknowledged + unknown).contains(&last),
        "{acknowledged} were acknowledged, {unknown} failed, and the counter is {last}"
    );
}

async fn open(address: &str) -> Store {
    loop {
        match Store::open(address, options()).await {
            Ok(store) => return store,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}
