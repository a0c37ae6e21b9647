//! What every store promises.

use std::{future::Future, pin::Pin};

use neap_store::{
    AuditRow, Commit, Cursor, DocumentKey, Error, ListRequest, Partition, Precondition,
    QueueChange, Scope, Store, UniqueKey, Write,
};
use serde_json::{Value, json};

use crate::{THINGS, crowd};

type Contract = fn(Store) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! contracts {
    ($($module:tt::$name:ident),* $(,)?) => {
        pub(crate) const ALL: &[(&str, Contract)] = &[
            $((stringify!($name), |store| Box::pin($module::$name(store)))),*
        ];
    };
}

contracts! {
    self::unknown_fields_survive,
    self::a_write_needs_the_version_that_was_read,
    self::a_commit_happens_as_a_whole_or_not_at_all,
    self::a_check_needs_the_version_that_was_read,
    self::the_time_is_that_of_the_database,
    self::unique_keys_are_unique_in_their_partition,
    self::a_rehearsal_is_refused_like_its_commit_and_changes_nothing,
    self::a_partition_shows_nothing_of_another,
    self::documents_expire_by_the_clock_of_the_database,
    self::a_worker_that_lost_its_lease_writes_nothing,
    self::partitions_take_turns,
    self::claims_are_counted_until_work_makes_progress,
    self::a_worker_knows_when_the_next_lease_ends,
    self::the_feed_reports_changes_and_deletions,
    self::a_position_of_the_future_is_refused,
    self::secure_fields_are_stored_sealed,
    self::lists_are_paged_in_order,
    self::lists_are_in_the_order_of_bytes,
    self::ids_are_lower_case_and_not_empty,
    crowd::concurrent_writers_lose_no_update_and_readers_no_change,
    crowd::every_key_is_linearizable_under_sixteen_writers,
    crowd::no_two_workers_hold_a_document,
    crowd::nothing_is_added_to_what_is_closed,
}

pub(crate) fn key(id: &str) -> DocumentKey {
    DocumentKey::new(THINGS, &Partition::subscription("s"), id)
}

fn key_in(partition: &str, id: &str) -> DocumentKey {
    DocumentKey::new(THINGS, &Partition::subscription(partition), id)
}

pub(crate) fn put(key: DocumentKey, precondition: Precondition, queue: QueueChange) -> Write {
    Write::Put {
        key,
        precondition,
        body: json!({}),
        unique: vec![],
        ttl: None,
        queue,
    }
}

pub(crate) const WORK: QueueChange = QueueChange::Queue {
    name: "work",
    delay: 0,
    reset: true,
};

async fn body(store: &Store, id: &str) -> Option<Value> {
    let found = store.get(Scope::Everywhere, &key(id)).await.unwrap();
    found.map(|document| document.body)
}

async fn unknown_fields_survive(store: Store) {
    let content = json!({"a": {"b": [{"c": 1, "x.y/z~": null}]}, "ü": "\u{1f600}", "n": 1e-7});
    let commit = Commit::default().create(key("a"), content.clone());
    store.commit(commit).await.unwrap();
    assert_eq!(body(&store, "a").await, Some(content));
}

async fn a_write_needs_the_version_that_was_read(store: Store) {
    let create = || Commit::default().create(key("a"), json!({"n": 1}));
    let first = store.commit(create()).await.unwrap()[0];
    let error = store.commit(create()).await.unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");

    let replace =
        |etag, n| Commit::default().put(key("a"), Precondition::Etag(etag), json!({"n": n}));
    let second = store.commit(replace(first, 2)).await.unwrap()[0];
    assert_ne!(first, second);
    let error = store.commit(replace(first, 3)).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(body(&store, "a").await, Some(json!({"n": 2})));

    let delete = |etag| {
        Commit::default().with(Write::Delete {
            key: key("a"),
            precondition: Precondition::Etag(etag),
        })
    };
    let error = store.commit(delete(first)).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    store.commit(delete(second)).await.unwrap();
    let error = store.commit(delete(second)).await.unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
    // An etag never returns, not even with a document of the same id.
    let third = store.commit(create()).await.unwrap()[0];
    assert!(third > second);
}

async fn a_commit_happens_as_a_whole_or_not_at_all(store: Store) {
    store
        .commit(Commit::default().create(key("b"), json!({})))
        .await
        .unwrap();
    let row = AuditRow {
        actor: "a user".to_owned(),
        ..AuditRow::default()
    };
    let commit = Commit::default()
        .create(key("a"), json!({}))
        .create(key("b"), json!({}))
        .announce("topic", json!({"n": 1}))
        .audit(row.clone());
    store.commit(commit).await.unwrap_err();
    assert_eq!(body(&store, "a").await, None);
    assert!(store.outbox(9).await.unwrap().is_empty());
    assert!(store.audit(9).await.unwrap().is_empty());

    let commit = Commit::default()
        .create(key("a"), json!({}))
        .announce("topic", json!({"n": 1}))
        .audit(row.clone());
    store.commit(commit).await.unwrap();
    assert_eq!(store.audit(9).await.unwrap(), [row]);
    let outbox = store.outbox(9).await.unwrap();
    assert_eq!((&*outbox[0].1, &outbox[0].2), ("topic", &json!({"n": 1})));
    store.delivered(outbox[0].0).await.unwrap();
    assert!(store.outbox(9).await.unwrap().is_empty());
}

async fn unique_keys_are_unique_in_their_partition(store: Store) {
    let create = |key: DocumentKey, value: &str| {
        Commit::default().with(Write::Put {
            key,
            precondition: Precondition::Absent,
            body: json!({}),
            unique: vec![UniqueKey {
                name: "client",
                value: value.to_owned(),
            }],
            ttl: None,
            queue: QueueChange::Keep,
        })
    };
    let etag = store.commit(create(key("a"), "x")).await.unwrap()[0];
    let error = store.commit(create(key("b"), "x")).await.unwrap_err();
    let Error::Unique { name, holder } = error else {
        panic!("{error}");
    };
    assert_eq!((&*name, &*holder), ("client", "a"));
    assert_eq!(body(&store, "b").await, None);
    store.commit(create(key("b"), "y")).await.unwrap();
    store.commit(create(key_in("t", "c"), "x")).await.unwrap();
    // A deleted document holds no key.
    let delete = Write::Delete {
        key: key("a"),
        precondition: Precondition::Etag(etag),
    };
    store.commit(Commit::default().with(delete)).await.unwrap();
    store.commit(create(key("d"), "x")).await.unwrap();
}

async fn a_rehearsal_is_refused_like_its_commit_and_changes_nothing(store: Store) {
    let create = |id: &str, value: &str| {
        let unique = vec![UniqueKey {
            name: "client",
            value: value.to_owned(),
        }];
        Commit::default().with(Write::Put {
            key: key(id),
            precondition: Precondition::Absent,
            body: json!({"of": id}),
            unique,
            ttl: None,
            queue: QueueChange::Keep,
        })
    };
    store.commit(create("a", "x")).await.unwrap();
    for refused in [create("a", "z"), create("b", "x")] {
        let rehearsed = store.rehearse(refused.clone()).await.unwrap_err();
        let committed = store.commit(refused).await.unwrap_err();
        assert_eq!(rehearsed.to_string(), committed.to_string());
    }
    store.rehearse(create("b", "y")).await.unwrap();
    assert_eq!(body(&store, "b").await, None);
    // The rehearsal holds neither the id nor the key.
    store.commit(create("b", "y")).await.unwrap();
    let delete = Write::Delete {
        key: key("b"),
        precondition: Precondition::Etag(neap_store::Etag(0)),
    };
    let stale = Commit::default().with(delete);
    let error = store.rehearse(stale).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(body(&store, "b").await, Some(json!({"of": "b"})));
}

async fn a_check_needs_the_version_that_was_read(store: Store) {
    let create = Commit::default().create(key("parent"), json!({"n": 1}));
    let first = store.commit(create).await.unwrap()[0];
    let child = |id: &str, parent: &str, etag| {
        let check = Write::Check {
            key: key(parent),
            etag,
        };
        Commit::default().create(key(id), json!({})).with(check)
    };
    store.rehearse(child("a", "parent", first)).await.unwrap();
    let etags = store.commit(child("a", "parent", first)).await.unwrap();
    assert_eq!(etags.len(), 1, "a check makes no version");
    let parent = store.get(Scope::Everywhere, &key("parent")).await.unwrap();
    assert_eq!(parent.unwrap().etag, first, "a check changes nothing");
    let replace = Commit::default().put(key("parent"), Precondition::Etag(first), json!({"n": 2}));
    store.commit(replace).await.unwrap();
    for (parent, is_there) in [("parent", true), ("none", false)] {
        let rehearsed = store.rehearse(child("b", parent, first)).await.unwrap_err();
        let error = store.commit(child("b", parent, first)).await.unwrap_err();
        assert_eq!(rehearsed.to_string(), error.to_string());
        let is_expected = match error {
            Error::Conflict(_) => is_there,
            Error::Missing(_) => !is_there,
            _ => false,
        };
        assert!(is_expected, "{parent}: {error}");
        assert_eq!(body(&store, "b").await, None);
    }
}

async fn the_time_is_that_of_the_database(store: Store) {
    let before = store.now().await.unwrap();
    let create = Commit::default().create(key("a"), json!({}));
    store.commit(create).await.unwrap();
    let found = store.get(Scope::Everywhere, &key("a")).await.unwrap();
    let (written, after) = (found.unwrap().updated_at, store.now().await.unwrap());
    assert!(
        before <= written && written <= after,
        "{before} {written} {after}"
    );
}

async fn a_partition_shows_nothing_of_another(store: Store) {
    for partition in ["s", "t"] {
        let commit = Commit::default().create(key_in(partition, "a"), json!({"in": partition}));
        store.commit(commit).await.unwrap();
    }
    let (s, t) = (Partition::subscription("S"), Partition::subscription("t"));
    let of_t = key_in("t", "a");
    assert!(
        store
            .get(Scope::Partition(&s), &of_t)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        store
            .get(Scope::Partition(&t), &of_t)
            .await
            .unwrap()
            .is_some()
    );
    let list = |scope| ListRequest {
        collection: THINGS,
        scope,
        prefix: "",
        after: None,
        limit: 9,
    };
    let of_s = store.list(&list(Scope::Partition(&s))).await.unwrap();
    assert_eq!(of_s.len(), 1);
    assert_eq!(of_s[0].body["in"], "s");
    let all = store.list(&list(Scope::Everywhere)).await.unwrap();
    assert_eq!(all.len(), 2);
}

async fn documents_expire_by_the_clock_of_the_database(store: Store) {
    let create = |ttl| {
        Commit::default().with(Write::Put {
            key: key("a"),
            precondition: Precondition::Absent,
            body: json!({"ttl": ttl}),
            unique: vec![],
            ttl: Some(ttl),
            queue: QueueChange::Keep,
        })
    };
    store.commit(create(0)).await.unwrap();
    assert_eq!(body(&store, "a").await, None, "it has expired");
    let cursor = store
        .changes(THINGS, Cursor::default(), 9)
        .await
        .unwrap()
        .cursor;
    assert_eq!(store.expire().await.unwrap(), 1);
    let changes = store.changes(THINGS, cursor, 9).await.unwrap().changes;
    assert_eq!(changes.len(), 1);
    assert!(changes[0].document.is_none(), "an expiry is a deletion");
    store.commit(create(0)).await.unwrap();
    store.commit(create(3_600_000)).await.unwrap();
    assert_eq!(body(&store, "a").await, Some(json!({"ttl": 3_600_000})));
    assert_eq!(store.expire().await.unwrap(), 0);
}

async fn a_worker_that_lost_its_lease_writes_nothing(store: Store) {
    let create = put(key("a"), Precondition::Absent, WORK);
    store.commit(Commit::default().with(create)).await.unwrap();
    // A lease that lasts no time, as that of a worker which was stopped.
    let stopped = store
        .claim(THINGS, "work", "one", 0)
        .await
        .unwrap()
        .unwrap();
    let holder = store
        .claim(THINGS, "work", "two", 60_000)
        .await
        .unwrap()
        .unwrap();
    assert!(holder.lease.fence > stopped.lease.fence);
    assert!(
        store
            .claim(THINGS, "work", "one", 60_000)
            .await
            .unwrap()
            .is_none()
    );

    let write = |lease: &neap_store::Lease, n: i32| {
        let precondition = Precondition::Lease(lease.clone());
        Commit::default().put(key("a"), precondition, json!({"n": n}))
    };
    let lost = |error: Error| assert!(matches!(error, Error::LeaseLost(_)), "{error}");
    lost(store.commit(write(&stopped.lease, 1)).await.unwrap_err());
    lost(store.renew(&stopped.lease, 60_000).await.unwrap_err());
    lost(store.release(&stopped.lease, 0).await.unwrap_err());
    let fence = Write::Fence {
        lease: stopped.lease.clone(),
        progress: true,
    };
    let beside = Commit::default().with(fence).create(key("b"), json!({}));
    lost(store.commit(beside).await.unwrap_err());
    assert_eq!(body(&store, "b").await, None);

    store.renew(&holder.lease, 60_000).await.unwrap();
    store.commit(write(&holder.lease, 2)).await.unwrap();
    assert_eq!(body(&store, "a").await, Some(json!({"n": 2})));
    let state = store.work(&key("a")).await.unwrap();
    assert_eq!(state.owner.as_deref(), Some("two"));
    let end = put(
        key("a"),
        Precondition::Lease(holder.lease.clone()),
        QueueChange::Done,
    );
    store.commit(Commit::default().with(end)).await.unwrap();
    lost(store.commit(write(&holder.lease, 3)).await.unwrap_err());
    assert!(
        store
            .claim(THINGS, "work", "one", 0)
            .await
            .unwrap()
            .is_none()
    );
}

async fn partitions_take_turns(store: Store) {
    for (partition, id) in [("s", "1"), ("s", "2"), ("s", "3"), ("t", "4")] {
        let create = put(key_in(partition, id), Precondition::Absent, WORK);
        store.commit(Commit::default().with(create)).await.unwrap();
    }
    assert_eq!(store.queue_length(THINGS, "work").await.unwrap(), 4);
    let mut turns = Vec::new();
    while let Some(claimed) = store.claim(THINGS, "work", "one", 60_000).await.unwrap() {
        turns.push(claimed.lease.key.partition.name().to_owned());
    }
    assert_eq!(
        turns[1], "t",
        "the second claim is of the partition without one: {turns:?}"
    );
    assert_eq!(turns.len(), 4);
}

async fn claims_are_counted_until_work_makes_progress(store: Store) {
    let create = put(key("a"), Precondition::Absent, WORK);
    store.commit(Commit::default().with(create)).await.unwrap();
    let claim = || async {
        let claimed = store.claim(THINGS, "work", "one", 0).await.unwrap();
        claimed.unwrap().lease
    };
    assert_eq!(claim().await.dequeues, 1);
    let second = claim().await;
    assert_eq!(second.dequeues, 2);
    let progress = Write::Fence {
        lease: second.clone(),
        progress: true,
    };
    store
        .commit(Commit::default().with(progress))
        .await
        .unwrap();
    let third = claim().await;
    assert_eq!(third.dequeues, 1);
    store.release(&third, 60_000).await.unwrap();
    let later = store.claim(THINGS, "work", "one", 0).await.unwrap();
    assert!(later.is_none(), "it was released with a delay");
}

async fn a_worker_knows_when_the_next_lease_ends(store: Store) {
    let next = || async { store.next_claim(THINGS, "work").await.unwrap() };
    assert_eq!(next().await, None, "nothing waits");
    for id in ["a", "b"] {
        let create = put(key(id), Precondition::Absent, WORK);
        store.commit(Commit::default().with(create)).await.unwrap();
    }
    assert!(next().await.unwrap() <= 0, "both wait");
    for duration in [600_000, 60_000] {
        let claimed = store.claim(THINGS, "work", "one", duration).await.unwrap();
        assert!(claimed.is_some());
    }
    let first = next().await.unwrap();
    assert!((30_000..=60_000).contains(&first), "{first}");
    assert_eq!(store.next_claim(THINGS, "other").await.unwrap(), None);
}

async fn the_feed_reports_changes_and_deletions(store: Store) {
    let create = |id: &str| Commit::default().create(key(id), json!({"id": id}));
    let a = store.commit(create("a")).await.unwrap()[0];
    store.commit(create("b")).await.unwrap();
    let first = store.changes(THINGS, Cursor::default(), 1).await.unwrap();
    assert_eq!(first.changes.len(), 1);
    assert_eq!(first.changes[0].key, key("a"));
    let second = store.changes(THINGS, first.cursor, 9).await.unwrap();
    assert_eq!(second.changes.len(), 1);
    let document = second.changes[0].document.as_ref().unwrap();
    assert_eq!(document.body, json!({"id": "b"}));
    let delete = Write::Delete {
        key: key("a"),
        precondition: Precondition::Etag(a),
    };
    store.commit(Commit::default().with(delete)).await.unwrap();
    let third = store.changes(THINGS, second.cursor, 9).await.unwrap();
    assert_eq!(third.changes.len(), 1);
    assert_eq!(third.changes[0].key, key("a"));
    assert!(third.changes[0].document.is_none());
    let nothing = store.changes(THINGS, third.cursor, 9).await.unwrap();
    assert!(nothing.changes.is_empty());
    assert_eq!(nothing.cursor, third.cursor);
}

async fn a_position_of_the_future_is_refused(store: Store) {
    let future: Cursor =
        serde_json::from_value(json!({"transaction": 0, "revision": 1_000_000_000})).unwrap();
    let error = store.changes(THINGS, future, 9).await.unwrap_err();
    assert!(matches!(error, Error::FeedExpired), "{error}");
}

async fn secure_fields_are_stored_sealed(store: Store) {
    let content = json!({"secret": "hush", "open": "door"});
    let commit = Commit::default().create(key("a"), content.clone());
    store.commit(commit).await.unwrap();
    let found = store.get(Scope::Everywhere, &key("a")).await.unwrap();
    let found = found.unwrap();
    assert!(!found.body.to_string().contains("hush"));
    assert_eq!(found.body["open"], "door");
    assert_eq!(store.reveal(&found).unwrap(), content);
    // A write of what was read keeps the field.
    let replace =
        Commit::default().put(key("a"), Precondition::Etag(found.etag), found.body.clone());
    store.commit(replace).await.unwrap();
    let again = store.get(Scope::Everywhere, &key("a")).await.unwrap();
    assert_eq!(store.reveal(&again.unwrap()).unwrap(), content);
}

/// A page of one document each, as readers that keep their place see a list.
async fn listed(store: &Store, scope: Scope<'_>, prefix: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    loop {
        let request = ListRequest {
            collection: THINGS,
            scope,
            prefix,
            after: found.last().map(|(part, id)| (&**part, &**id)),
            limit: 1,
        };
        let page = store.list(&request).await.unwrap();
        let Some(document) = page.first() else {
            return found;
        };
        let key = &document.key;
        found.push((key.partition.name().to_owned(), key.id.clone()));
        assert!(found.len() < 100, "it never ends: {found:?}");
    }
}

async fn lists_are_in_the_order_of_bytes(store: Store) {
    // A language has another order of these, or ignores the signs in them.
    let ids = [
        "a_c", "a-b", "ab", "a/1", "a/_", "a/z", "a/\u{e9}", "a.x", "a", "b", "0",
    ];
    let partitions = ["s_1", "s-2", "s1", "s"];
    let mut expected = Vec::new();
    for partition in partitions {
        for id in ids {
            let commit = Commit::default().create(key_in(partition, id), json!({}));
            store.commit(commit).await.unwrap();
            expected.push((partition.to_owned(), id.to_owned()));
        }
    }
    expected.sort();
    assert_eq!(listed(&store, Scope::Everywhere, "").await, expected);
    let s = Partition::subscription("s-2");
    expected.retain(|(partition, _)| partition == s.name());
    let scope = Scope::Partition(&s);
    assert_eq!(listed(&store, scope, "").await, expected);
    expected.retain(|(_, id)| id.starts_with("a/"));
    assert_eq!(expected.len(), 4);
    assert_eq!(listed(&store, scope, "a/").await, expected);
}

async fn lists_are_paged_in_order(store: Store) {
    for id in ["x/3", "x/1", "y/1", "x/2"] {
        let commit = Commit::default().create(key(id), json!({}));
        store.commit(commit).await.unwrap();
    }
    let partition = Partition::subscription("s");
    let mut after: Option<(String, String)> = None;
    let mut ids = Vec::new();
    loop {
        let request = ListRequest {
            collection: THINGS,
            scope: Scope::Partition(&partition),
            prefix: "x/",
            after: after.as_ref().map(|(part, id)| (&**part, &**id)),
            limit: 2,
        };
        let page = store.list(&request).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.key.partition.name().to_owned(), last.key.id.clone()));
        ids.extend(page.into_iter().map(|document| document.key.id));
    }
    assert_eq!(ids, ["x/1", "x/2", "x/3"]);
}

async fn ids_are_lower_case_and_not_empty(store: Store) {
    for id in ["", "A"] {
        let commit = Commit::default().create(key(id), json!({}));
        let error = store.commit(commit).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
    let commit = Commit::default().create(key("a"), json!([]));
    store.commit(commit).await.unwrap_err();
}
