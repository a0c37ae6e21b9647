mod power_cut;

use jiff::Timestamp;
use serde_json::json;

use super::*;

const MAPS: &str = "/configmaps";

fn object(name: &str, value: u64) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "d", "labels": {"v": value.to_string()}},
        "data": {"v": value.to_string()},
    })
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

async fn put(store: &Store, name: &str, value: u64) -> u64 {
    let path = format!("d/{name}");
    let expect = match store.head(MAPS, &path).and_then(|head| head.object) {
        Some(object) => Expect::Revision(object.revision()),
        None => Expect::Absent,
    };
    let value = object(name, value);
    store
        .write(MAPS, &path, expect, Put::Object(&value), now())
        .await
        .unwrap()
        .revision()
}

async fn drop_object(store: &Store, name: &str) -> u64 {
    let path = format!("d/{name}");
    let live = store.head(MAPS, &path).unwrap().object.unwrap();
    let expect = Expect::Revision(live.revision());
    store
        .write(MAPS, &path, expect, Put::Gone(&live.value()), now())
        .await
        .unwrap()
        .revision()
}

fn names(page: &Page) -> Vec<String> {
    page.objects
        .iter()
        .map(|(key, object)| format!("{key}={}", object.value()["data"]["v"]))
        .collect()
}

async fn page_at(store: &Store, revision: u64) -> Result<Page, Error> {
    View::of(store.clone())
        .page(MAPS, KeyRange::default(), Some(revision))
        .await
        .unwrap()
}

#[tokio::test]
async fn revisions_count_every_write_and_are_inside_the_object() {
    let store = Store::in_memory(41, Retention::default());
    assert_eq!(put(&store, "a", 1).await, 42);
    assert_eq!(put(&store, "a", 2).await, 43);
    let live = store.head(MAPS, "d/a").unwrap().object.unwrap();
    assert_eq!(live.value()["metadata"]["resourceVersion"], "43");
    assert_eq!(live.metadata().labels["v"], "2");
}

#[tokio::test]
async fn a_write_on_another_state_is_a_conflict() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    let value = object("a", 2);
    for expect in [Expect::Absent, Expect::Revision(7)] {
        let refused = store
            .write(MAPS, "d/a", expect, Put::Object(&value), now())
            .await;
        assert_eq!(refused.unwrap_err(), Error::Conflict);
    }
    assert_eq!(store.revision(), 1);
}

#[tokio::test]
async fn the_past_can_be_read_until_it_is_compacted() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    put(&store, "b", 1).await;
    put(&store, "a", 2).await;
    drop_object(&store, "b").await;
    put(&store, "c", 1).await;
    assert_eq!(
        names(&page_at(&store, 2).await.unwrap()),
        [r#"d/a="1""#, r#"d/b="1""#]
    );
    assert_eq!(names(&page_at(&store, 4).await.unwrap()), [r#"d/a="2""#]);
    store.compact(3);
    let expected = Error::Compacted {
        asked: 2,
        oldest: 3,
    };
    assert_eq!(page_at(&store, 2).await.unwrap_err(), expected);
    assert_eq!(
        names(&page_at(&store, 3).await.unwrap()),
        [r#"d/a="2""#, r#"d/b="1""#]
    );
    assert_eq!(
        page_at(&store, 6).await.unwrap_err(),
        Error::Future {
            asked: 6,
            newest: 5
        }
    );
}

#[tokio::test]
async fn a_cursor_sees_all_changes_of_its_resource_once_and_in_order() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    let mut cursor = View::of(store.clone()).watch(MAPS, 0);
    put(&store, "a", 2).await;
    drop_object(&store, "a").await;
    let seen: Vec<(Change, u64)> = cursor
        .take()
        .unwrap()
        .iter()
        .map(|e| (e.change, e.revision()))
        .collect();
    assert_eq!(
        seen,
        [
            (Change::Added, 1),
            (Change::Modified, 2),
            (Change::Deleted, 3)
        ]
    );
    assert!(cursor.take().unwrap().is_empty());
    put(&store, "a", 3).await;
    cursor.changed().await;
    assert_eq!(cursor.take().unwrap().len(), 1);
}

#[tokio::test]
async fn a_cursor_whose_place_was_forgotten_is_told() {
    let store = Store::in_memory(0, Retention::default());
    let mut cursor = View::of(store.clone()).watch(MAPS, 0);
    put(&store, "a", 1).await;
    put(&store, "a", 2).await;
    store.compact(2);
    assert_eq!(
        cursor.take().unwrap_err(),
        Error::Compacted {
            asked: 0,
            oldest: 2
        }
    );
}

#[tokio::test]
async fn changes_elsewhere_do_not_cost_a_quiet_watcher_its_place() {
    let store = Store::in_memory(
        0,
        Retention {
            bytes: 4096,
            ..Retention::default()
        },
    );
    put(&store, "a", 1).await;
    let mut cursor = View::of(store.clone()).watch("/secrets", 1);
    for value in 0..100 {
        put(&store, "a", value).await;
    }
    assert!(store.oldest() > 1);
    assert!(cursor.take().unwrap().is_empty());
}

#[tokio::test]
async fn history_is_bounded_in_bytes_and_in_time() {
    let store = Store::in_memory(
        0,
        Retention {
            bytes: 10_000,
            ..Retention::default()
        },
    );
    for value in 0..1000 {
        put(&store, "a", value).await;
    }
    assert!(store.export_history().len() < 50);
    store.expire(now() + jiff::SignedDuration::from_secs(301));
    assert!(store.export_history().is_empty());
}

#[tokio::test]
async fn a_lagging_view_shows_the_past_but_writes_the_present() {
    let store = Store::in_memory(0, Retention::default());
    let view = View::of(store.clone());
    view.set_lag(2);
    for value in 1..=4 {
        put(&store, "a", value).await;
    }
    assert_eq!(view.revision(), 2);
    let seen = view.get(MAPS, "d/a").await.unwrap().unwrap();
    assert_eq!(seen.value()["data"]["v"], "2");
    let mut cursor = view.watch(MAPS, 0);
    assert_eq!(cursor.take().unwrap().len(), 2);
    view.set_lag(0);
    assert_eq!(cursor.take().unwrap().len(), 2);
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    let fork = store.fork();
    put(&fork, "b", 1).await;
    put(&store, "a", 2).await;
    assert_eq!(
        names(&page_at(&fork, 2).await.unwrap()),
        [r#"d/a="1""#, r#"d/b="1""#]
    );
    assert_eq!(names(&page_at(&store, 2).await.unwrap()), [r#"d/a="2""#]);
    assert_eq!(fork.export_history().len(), 2);
}

#[tokio::test]
async fn a_durable_store_comes_back_with_its_revision_and_its_watchers_resume() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let disk = Box::new(journal::FolderDisk::open(folder.path()).unwrap());
        Store::durable(disk, Retention::default(), now()).unwrap()
    };
    let store = open();
    put(&store, "a", 1).await;
    put(&store, "b", 1).await;
    put(&store, "a", 2).await;
    drop_object(&store, "b").await;
    store.close();
    let refused = store
        .write(
            MAPS,
            "d/x",
            Expect::Absent,
            Put::Object(&object("x", 1)),
            now(),
        )
        .await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    drop(store);
    let store = open();
    assert_eq!(store.revision(), 4);
    assert_eq!(names(&page_at(&store, 4).await.unwrap()), [r#"d/a="2""#]);
    let mut cursor = View::of(store.clone()).watch(MAPS, 2);
    let seen: Vec<Change> = cursor
        .take()
        .unwrap()
        .iter()
        .map(|event| event.change)
        .collect();
    assert_eq!(seen, [Change::Modified, Change::Deleted]);
    assert_eq!(put(&store, "c", 1).await, 5);
    store.close();
}

#[tokio::test]
async fn concurrent_durable_writers_all_commit_and_conflict_correctly() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Box::new(journal::FolderDisk::open(folder.path()).unwrap());
    let store = Store::durable(disk, Retention::default(), now()).unwrap();
    let writes = (0..64).map(|i| {
        let store = store.clone();
        async move {
            let value = object("same", i);
            store
                .write(MAPS, "d/same", Expect::Absent, Put::Object(&value), now())
                .await
                .is_ok()
        }
    });
    let won = futures::future::join_all(writes)
        .await
        .into_iter()
        .filter(|won| *won)
        .count();
    assert_eq!(won, 1);
    let writes = (0..64).map(|i| {
        let store = store.clone();
        async move { put(&store, &format!("n{i}"), i).await }
    });
    let mut revisions = futures::future::join_all(writes).await;
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), 64);
    assert_eq!(store.count(MAPS), 65);
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_commit_never_stops_the_writer() {
    const WRITES: u64 = 5000;
    let store = Store::in_memory(0, Retention::default());
    let waiting = store.clone();
    let mut waiter = tokio::task::JoinSet::new();
    waiter.spawn(async move {
        for revision in 1..=WRITES {
            waiting.settled(revision).await.unwrap();
        }
    });
    for value in 0..WRITES {
        put(&store, "a", value).await;
        tokio::task::yield_now().await;
    }
    waiter.join_all().await;
}

#[tokio::test]
async fn a_view_shows_a_revision_once_it_no_longer_lags_behind_it() {
    let store = Store::in_memory(0, Retention::default());
    let view = View::of(store.clone());
    view.set_lag(1);
    put(&store, "a", 1).await;
    let catch_up = async {
        tokio::task::yield_now().await;
        assert_eq!(view.revision(), 0);
        view.set_lag(0);
    };
    let (shown, ()) = tokio::join!(view.shows(1), catch_up);
    shown.unwrap();
}

#[tokio::test]
async fn a_closed_store_in_memory_refuses_writes_and_ends_waits() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    let stop = async { store.close() };
    let (waited, ()) = tokio::join!(store.settled(2), stop);
    assert!(matches!(waited, Err(Error::Broken(_))), "{waited:?}");
    let value = object("b", 1);
    let refused = store
        .write(MAPS, "d/b", Expect::Absent, Put::Object(&value), now())
        .await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    assert!(store.is_broken());
}

#[tokio::test]
async fn a_panicked_writer_releases_its_waiters() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Box::new(journal::FolderDisk::open(folder.path()).unwrap());
    let store = Store::durable(disk, Retention::default(), now()).unwrap();
    store.follow(MAPS, Box::new(|_, _| panic!("a bug, for the sake of it")));
    for name in ["a", "b"] {
        let path = format!("d/{name}");
        let value = object(name, 1);
        let refused = store
            .write(MAPS, &path, Expect::Absent, Put::Object(&value), now())
            .await;
        assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    }
    store.close();
}

#[tokio::test]
async fn a_follower_is_shown_what_is_there_and_then_every_commit() {
    let store = Store::in_memory(0, Retention::default());
    put(&store, "a", 1).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let follower = move |change, object: &Object| {
        notes.lock().push((change, object.revision()));
    };
    store.follow(MAPS, Box::new(follower));
    put(&store, "a", 2).await;
    drop_object(&store, "a").await;
    let expected = [
        (Change::Added, 1),
        (Change::Modified, 2),
        (Change::Deleted, 3),
    ];
    assert_eq!(*seen.lock(), expected);
}

#[tokio::test]
async fn an_object_that_is_too_large_is_refused_and_takes_no_revision() {
    let store = Store::in_memory(0, Retention::default());
    let mut large = object("large", 1);
    large["data"]["v"] = json!("x".repeat(MAX_OBJECT_BYTES - 200));
    let write = async |expect, value: &Value| {
        store
            .write(MAPS, "d/large", expect, Put::Object(value), now())
            .await
    };
    let mut larger = large.clone();
    larger["data"]["w"] = json!("x".repeat(200));
    let refused = write(Expect::Absent, &larger).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
    assert_eq!(store.sequenced(), 0);
    write(Expect::Absent, &large).await.unwrap();
    // The deletion timestamp still fits.
    larger["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    write(Expect::Revision(1), &larger).await.unwrap();
}

#[tokio::test]
async fn a_page_takes_up_to_its_limit_and_counts_the_rest_now_and_in_the_past() {
    let store = Store::in_memory(0, Retention::default());
    for name in ["a", "b", "c", "d"] {
        put(&store, name, 1).await;
    }
    drop_object(&store, "b").await;
    let view = View::of(store);
    let cases = [
        (5, None, Some(2), "a c", 1),
        (4, None, Some(2), "a b", 2),
        (4, Some("d/b"), Some(2), "c d", 0),
        (5, Some("d/a"), Some(1), "c", 1),
        (4, Some("d/a"), None, "b c d", 0),
        (5, None, Some(3), "a c d", 0),
    ];
    for (revision, after, limit, expected, remaining) in cases {
        let range = KeyRange {
            namespace: "d",
            after,
            limit,
        };
        let page = view.page(MAPS, range, Some(revision)).await.unwrap();
        let page = page.unwrap();
        let names: Vec<_> = page.objects.iter().map(|(path, _)| &path[2..]).collect();
        assert_eq!(names.join(" "), expected, "{revision} {after:?} {limit:?}");
        assert_eq!(page.remaining, remaining, "{revision} {after:?} {limit:?}");
    }
}
