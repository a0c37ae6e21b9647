//! Many writers, workers and readers at once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use neap_store::{
    Commit, Cursor, Error, ListRequest, Precondition, QueueChange, Scope, Store, Write,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    THINGS,
    contract::{WORK, key, put},
};

const WRITERS: usize = 16;
const READERS: usize = 4;
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

/// When something happened, in an order in which nothing happens at once.
#[derive(Debug, Default)]
struct Order(AtomicUsize);

impl Order {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// A call as its caller sees it: begun, ended, and the value of the counter that it read or wrote.
#[derive(Debug, Clone, Copy)]
struct Call {
    begun: usize,
    ended: usize,
    value: i64,
}

/// Each counter behaves as if every call happened at one moment between its begin and its end: writers add
/// one, so that the value is the number of writes before that moment.
pub(crate) async fn every_key_is_linearizable_under_sixteen_writers(store: Store) {
    let (order, ended) = (Arc::new(Order::default()), Arc::new(AtomicBool::new(false)));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write_counters(store.clone(), order.clone(), writer));
    }
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        let ended = ended.clone();
        readers.spawn(read_counters(store.clone(), order.clone(), ended, reader));
    }
    let writes: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    ended.store(true, Ordering::SeqCst);
    let reads: Vec<_> = readers.join_all().await.into_iter().flatten().collect();
    assert!(!reads.is_empty());
    for counter in 0..COUNTERS {
        let id = format!("counter-{counter}");
        let of = |calls: &[(String, Call)]| -> Vec<Call> {
            let of = calls.iter().filter(|(it, _)| *it == id);
            of.map(|(_, call)| *call).collect()
        };
        judge(&of(&writes), &of(&reads));
    }
}

async fn write_counters(store: Store, order: Arc<Order>, writer: usize) -> Vec<(String, Call)> {
    let mut calls = Vec::new();
    for turn in 0..INCREMENTS {
        let id = format!("counter-{}", (writer + turn) % COUNTERS);
        let begun = order.next();
        let value = increment(&store, &id).await.unwrap();
        let ended = order.next();
        let call = Call {
            begun,
            ended,
            value,
        };
        calls.push((id, call));
    }
    calls
}

async fn read_counters(
    store: Store,
    order: Arc<Order>,
    stop: Arc<AtomicBool>,
    first: usize,
) -> Vec<(String, Call)> {
    let (mut calls, mut turn) = (Vec::new(), first);
    while !stop.load(Ordering::SeqCst) {
        turn += 1;
        let id = format!("counter-{}", turn % COUNTERS);
        let begun = order.next();
        let found = store.get(Scope::Everywhere, &key(&id)).await.unwrap();
        let value = found.map_or(0, |it| it.body["n"].as_i64().unwrap());
        let ended = order.next();
        let call = Call {
            begun,
            ended,
            value,
        };
        calls.push((id, call));
        tokio::task::yield_now().await;
    }
    calls
}

fn judge(writes: &[Call], reads: &[Call]) {
    let mut by_value = writes.to_vec();
    by_value.sort_by_key(|it| it.value);
    let values: Vec<_> = by_value.iter().map(|it| it.value).collect();
    let all: Vec<_> = (1..).take(writes.len()).collect();
    assert_eq!(values, all, "each value is written once");
    // In the order of values, no call ended before one of a smaller value had begun. A read of a value comes
    // after its write and before the next one.
    let mut history: Vec<_> = writes.iter().map(|it| (it.value, 0, *it)).collect();
    history.extend(reads.iter().map(|it| (it.value, 1, *it)));
    history.sort_by_key(|(value, kind, call)| (*value, *kind, call.begun));
    let mut begun_last = 0;
    for (value, kind, call) in history {
        assert!(
            call.ended > begun_last,
            "{value} {kind}: {call:?} comes too late"
        );
        begun_last = begun_last.max(call.begun);
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

/// The documents whose ids begin so.
async fn count(store: &Store, prefix: &str) -> usize {
    let request = ListRequest {
        collection: THINGS,
        scope: Scope::Everywhere,
        prefix,
        after: None,
        limit: 100_000,
    };
    store.list(&request).await.unwrap().len()
}

/// Writers add to a parent that they have read as open, while it is closed and its children are counted: the
/// count is final.
pub(crate) async fn nothing_is_added_to_what_is_closed(store: Store) {
    const ROUNDS: usize = 5;
    for round in 0..ROUNDS {
        let (parent, prefix) = (key(&format!("parent-{round}")), format!("child-{round}-"));
        let open = Commit::default().create(parent.clone(), json!({"open": true}));
        let etag = store.commit(open).await.unwrap()[0];
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let (store, parent, prefix) = (store.clone(), parent.clone(), prefix.clone());
            writers.spawn(async move {
                for turn in 0.. {
                    let child = key(&format!("{prefix}{writer}-{turn}"));
                    let check = Write::Check {
                        key: parent.clone(),
                        etag,
                    };
                    let add = Commit::default().create(child, json!({})).with(check);
                    match store.commit(add).await {
                        Ok(_) => tokio::task::yield_now().await,
                        Err(Error::Conflict(_)) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        while count(&store, &prefix).await < 8 {
            tokio::task::yield_now().await;
        }
        let close = Commit::default().put(parent, Precondition::Etag(etag), json!({}));
        store.commit(close).await.unwrap();
        let counted = count(&store, &prefix).await;
        writers.join_all().await;
        assert_eq!(count(&store, &prefix).await, counted);
    }
}
