//! A database that dies while it is written to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use neap_store::{Cursor, Error, Scope, Store};
use tokio::task::JoinSet;

use crate::{THINGS, contract::key, crowd::increment, options, postgres::Postgres};

/// How often the database is killed, unless the environment says another number.
const KILLS: usize = 10;
const KILLS_VARIABLE: &str = "NEAP_STORE_KILLS";
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
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicBool::new(false));
    let kills = std::env::var(KILLS_VARIABLE).map_or(KILLS, |kills| kills.parse().unwrap());
    let reader = {
        let (store, ended) = (store.clone(), ended.clone());
        tokio::spawn(async move { last_in_feed(&store, &ended).await })
    };
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, stop) = (store.clone(), stop.clone());
        let (acknowledged, unknown) = (acknowledged.clone(), unknown.clone());
        writers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                match increment(&store, "counter").await {
                    Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
                    Err(error) if error.is_transient() => unknown.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                };
                tokio::task::yield_now().await;
            }
        });
    }
    for kill in 1..=kills {
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
    stop.store(true, Ordering::Relaxed);
    writers.join_all().await;
    ended.store(true, Ordering::Relaxed);
    let in_feed = reader.await.unwrap();
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
    assert_eq!(in_feed, last, "the feed ends with what the store has");
    eprintln!("{kills} kills, {acknowledged} acknowledged, {unknown} failed, {last} counted");
}

/// The counter as a reader sees it that follows the feed through all kills. It never goes back.
async fn last_in_feed(store: &Store, ended: &AtomicBool) -> i64 {
    let (mut cursor, mut last) = (Cursor::default(), 0);
    loop {
        let is_last = ended.load(Ordering::Relaxed);
        let read = match store.changes(THINGS, cursor, 5).await {
            Ok(read) => read,
            // It had seen a number that the database has lost, although nothing that was committed.
            Err(Error::FeedExpired) => {
                cursor = Cursor::default();
                continue;
            }
            Err(_) => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        let is_empty = read.changes.is_empty();
        cursor = read.cursor;
        for change in read.changes {
            let n = change.document.unwrap().body["n"].as_i64().unwrap();
            assert!(n >= last, "{n} after {last}");
            last = n;
        }
        if is_last && is_empty {
            return last;
        }
        tokio::task::yield_now().await;
    }
}

async fn open(address: &str) -> Store {
    loop {
        match Store::open(address, options()).await {
            Ok(store) => return store,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}
