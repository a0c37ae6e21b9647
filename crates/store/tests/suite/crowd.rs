//! Many writers, workers and readers at once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use neap_store::{Commit, Cursor, Error, Precondition, QueueChange, Scope, Store, Write};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    THINGS,
    contract::{WORK, key, put},
};

const WRITERS: usize = 16;
const INCREMENTS: usize = 12;
const COUNTERS: usize = 3;

/// Adds one to a counter, whatever else happens to it. Returns the value that was written.
pub(crate) async fn increment(store: &Store, id: &str) -> Result<i64, Error> {
    loop {
        let read = store.get(Scope::Everywhere, &key(id)).await?;
        let (precondition, n) = match &read {
            None => (Precondition::Absent, 1),
            Some(document) => {
                let n = document.body["n"].as_i64().unwrap_or_default();
                (Precondition::Etag(document.etag), n + 1)
            }
        };
        let commit = Commit::default().put(key(id), precondition, json!({ "n": n }));
        match store.commit(commit).await {
            Ok(_) => return Ok(n),
            Err(Error::Conflict(_) | Error::Exists(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Each value of each counter is written once, the last is the number of increments, and a reader that
/// follows the feed ends with exactly what the store has.
pub(crate) async fn concurrent_writers_lose_no_update_and_readers_no_change(store: Store) {
    let ended = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, ended) = (store.clone(), ended.clone());
        tokio::spawn(async move { follow(&store, &ended).await })
    };
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            let mut written = Vec::new();
            for turn in 0..INCREMENTS {
                let id = format!("counter-{}", (writer + turn) % COUNTERS);
                let n = increment(&store, &id).await.unwrap();
                written.push((id, n));
            }
            // A document that is created and deleted, so that the feed has deletions as well.
            let brief = format!("brief-{writer}");
            let create = Commit::default().create(key(&brief), json!({}));
            let etag = store.commit(create).await.unwrap()[0];
            let delete = Write::Delete {
                key: key(&brief),
                precondition: Precondition::Etag(etag),
            };
            store.commit(Commit::default().with(delete)).await.unwrap();
            written
        });
    }
    let mut written: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    ended.store(true, Ordering::Relaxed);
    let seen = reader.await.unwrap();
    written.sort();
    let total = written.len();
    written.dedup();
    assert_eq!((written.len(), total), (total, WRITERS * INCREMENTS));
    let mut expected = BTreeMap::new();
    for (id, n) in written {
        expected.insert(id, json!({ "n": n }));
    }
    assert_eq!(seen, expected);
}

/// The documents as they follow from the feed alone, read until after the writers ended.
async fn follow(store: &Store, ended: &AtomicBool) -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    let mut cursor = Cursor::default();
    loop {
        let is_last = ended.load(Ordering::Relaxed);
        let read = store.changes(THINGS, cursor, 5).await.unwrap();
        let is_empty = read.changes.is_empty();
        cursor = read.cursor;
        for change in read.changes {
            match change.document {
                Some(document) => documents.insert(change.key.id, document.body),
                None => documents.remove(&change.key.id),
            };
        }
        if is_last && is_empty {
            return documents;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn no_two_workers_hold_a_document(store: Store) {
    const DOCUMENTS: usize = 12;
    for at in 0..DOCUMENTS {
        let create = put(key(&format!("d{at}")), Precondition::Absent, WORK);
        store.commit(Commit::default().with(create)).await.unwrap();
    }
    let done = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..6 {
        let (store, done) = (store.clone(), done.clone());
        workers.spawn(async move {
            while done.load(Ordering::Relaxed) < DOCUMENTS {
                let owner = format!("worker-{worker}");
                let claimed = store.claim(THINGS, "work", &owner, 600_000).await.unwrap();
                let Some(claimed) = claimed else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let end = Write::Put {
                    key: claimed.lease.key.clone(),
                    precondition: Precondition::EtagAndLease(
                        claimed.document.etag,
                        claimed.lease.clone(),
                    ),
                    body: json!({"by": owner}),
                    unique: vec![],
                    ttl: None,
                    queue: QueueChange::Done,
                };
                store.commit(Commit::default().with(end)).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    workers.join_all().await;
    assert_eq!(done.load(Ordering::Relaxed), DOCUMENTS);
}
