//! What only a server has: announcements, transactions beside each other, holders that stop.

use std::time::Duration;

use neap_store::{Commit, Cursor, Error, Precondition, Store};
use serde_json::json;
use sqlx::{Executor, PgPool, Row};
use tokio::time::timeout;

use crate::{
    THINGS,
    contract::{WORK, key, put},
    options,
    postgres::Postgres,
};

/// The time after which a test has failed that waits for something.
const TOO_LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn work_that_another_process_queues_wakes_a_waiting_claimer() {
    let Some(postgres) =
        Postgres::start("work_that_another_process_queues_wakes_a_waiting_claimer")
    else {
        return;
    };
    let ours = postgres.store("notified").await;
    let theirs = Store::open(&postgres.address_of("notified"), options())
        .await
        .unwrap();
    let listening = {
        let ours = ours.clone();
        tokio::spawn(async move { ours.listen().await })
    };
    // It listens from the moment at which the database lists it.
    let pool = PgPool::connect(&postgres.address_of("notified"))
        .await
        .unwrap();
    let listens = async {
        let text = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
        while sqlx::query(text)
            .fetch_one(&pool)
            .await
            .unwrap()
            .get::<i64, _>(0)
            == 0
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(TOO_LONG, listens).await.unwrap();
    // It asks once, finds nothing, and never asks without an announcement again.
    let claimed = ours.claim(THINGS, "work", "ours", 60_000).await.unwrap();
    assert!(claimed.is_none());
    let mut announced = ours.work_announced();
    announced.mark_unchanged();
    let waiting = async {
        announced.changed().await.unwrap();
        ours.claim(THINGS, "work", "ours", 60_000).await.unwrap()
    };
    let queueing = async {
        let create = put(key("a"), Precondition::Absent, WORK);
        theirs.commit(Commit::default().with(create)).await.unwrap();
    };
    let (claimed, ()) = timeout(TOO_LONG, async { tokio::join!(waiting, queueing) })
        .await
        .expect("the announcement of the other process is heard");
    assert_eq!(claimed.unwrap().document.key, key("a"));
    listening.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_waits_for_a_transaction_that_took_an_earlier_number() {
    let Some(postgres) = Postgres::start("the_feed_waits_for_a_transaction") else {
        return;
    };
    let store = postgres.store("horizon").await;
    let pool = PgPool::connect(&postgres.address_of("horizon"))
        .await
        .unwrap();
    // A writer that has its number, and not committed yet.
    let mut slow = pool.begin().await.unwrap();
    for text in [
        "INSERT INTO neap_documents (collection, part, id, revision, body, updated_at)
            VALUES ('things', 's', 'slow', nextval('neap_revision'), '{}', 0)",
        "INSERT INTO neap_changes (collection, part, id, txn, revision, deleted, changed_at)
            SELECT 'things', 's', 'slow', CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT),
                revision, 0, 0 FROM neap_documents WHERE id = 'slow'",
    ] {
        slow.execute(text).await.unwrap();
    }
    let quick = Commit::default().create(key("quick"), json!({}));
    store.commit(quick).await.unwrap();
    // A reader that saw the second now would never see the first.
    let first = store.changes(THINGS, Cursor::default(), 9).await.unwrap();
    assert_eq!(first.changes, [], "the horizon is before both");
    slow.commit().await.unwrap();
    let mut ids = Vec::new();
    let mut cursor = first.cursor;
    while ids.len() < 2 {
        let read = store.changes(THINGS, cursor, 1).await.unwrap();
        cursor = read.cursor;
        ids.extend(read.changes.into_iter().map(|change| change.key.id));
    }
    assert_eq!(ids, ["slow", "quick"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_stops_inside_a_transaction_keeps_its_work_only_for_a_while() {
    let Some(postgres) = Postgres::start("a_holder_that_stops_inside_a_transaction") else {
        return;
    };
    let store = postgres.store("stopped").await;
    let create = put(key("a"), Precondition::Absent, WORK);
    store.commit(Commit::default().with(create)).await.unwrap();
    let stopped = store.claim(THINGS, "work", "one", 0).await.unwrap();
    let stopped = stopped.unwrap().lease;
    // A connection of the program as the database sees it, which stops after its first statement.
    let pool = PgPool::connect(&postgres.address_of("stopped"))
        .await
        .unwrap();
    let mut holder = pool.acquire().await.unwrap();
    holder
        .execute("SET idle_in_transaction_session_timeout = '500ms'")
        .await
        .unwrap();
    holder.execute("BEGIN").await.unwrap();
    holder
        .execute("UPDATE neap_work SET dequeues = dequeues")
        .await
        .unwrap();
    let none = store.claim(THINGS, "work", "two", 60_000).await.unwrap();
    assert!(none.is_none(), "a locked row is skipped");
    let taken = timeout(TOO_LONG, async {
        loop {
            if let Some(claimed) = store.claim(THINGS, "work", "two", 60_000).await.unwrap() {
                return claimed;
            }
            tokio::task::yield_now().await;
        }
    });
    let taken = taken.await.unwrap();
    assert!(taken.lease.fence > stopped.fence);
    // It goes on, and writes nothing.
    holder.execute("COMMIT").await.unwrap_err();
    let precondition = Precondition::Lease(stopped);
    let late = Commit::default().put(key("a"), precondition, json!({"late": true}));
    let error = store.commit(late).await.unwrap_err();
    assert!(matches!(error, Error::LeaseLost(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_two_versions_work_on_one_database_and_older_ones_are_refused() {
    let Some(postgres) = Postgres::start("programs_of_two_versions_work_on_one_database") else {
        return;
    };
    // This program as the older one: the database has the schema of the next, which it can use.
    let before = postgres.store("versions").await;
    let address = postgres.address_of("versions");
    let pool = PgPool::connect(&address).await.unwrap();
    let text = "UPDATE neap_meta SET value = value + 1 WHERE name = 'schema'";
    pool.execute(text).await.unwrap();
    let beside = Store::open(&address, options()).await.unwrap();
    let mut written = tokio::task::JoinSet::new();
    for store in [before.clone(), beside] {
        for _ in 0..4 {
            let store = store.clone();
            written.spawn(async move {
                for _ in 0..5 {
                    crate::crowd::increment(&store, "shared").await.unwrap();
                }
            });
        }
    }
    written.join_all().await;
    assert_eq!(
        crate::crowd::increment(&before, "shared").await.unwrap(),
        41
    );
    // Two versions later it cannot.
    for name in ["schema", "readable_by"] {
        let text = "UPDATE neap_meta SET value = 90 WHERE name = $1";
        sqlx::query(text).bind(name).execute(&pool).await.unwrap();
    }
    let error = Store::open(&address, options()).await.unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 90, .. }), "{error}");
    assert!(
        error.to_string().contains("start a newer version"),
        "{error}"
    );
}

/// A server that has no room says so at a statement or at the end of a transaction. A trigger says it here
/// in its place: a test cannot fill a disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_nothing_is_half_written() {
    let Some(postgres) = Postgres::start("a_full_disk_is_told_and_nothing_is_half_written") else {
        return;
    };
    let store = postgres.store("full_disk").await;
    let pool = PgPool::connect(&postgres.address_of("full_disk"))
        .await
        .unwrap();
    let function = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END $$";
    pool.execute(function).await.unwrap();
    for trigger in [
        "CREATE TRIGGER full_disk BEFORE INSERT ON neap_outbox",
        "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON neap_outbox DEFERRABLE INITIALLY DEFERRED",
    ] {
        let text = format!("{trigger} FOR EACH ROW EXECUTE FUNCTION full_disk()");
        pool.execute(sqlx::AssertSqlSafe(text)).await.unwrap();
        let commit = || {
            Commit::default()
                .create(key("a"), json!({}))
                .announce("topic", json!({}))
        };
        let error = store.commit(commit()).await.unwrap_err();
        assert!(matches!(error, Error::Full(_)), "{error:?}");
        assert!(error.is_transient());
        let scope = neap_store::Scope::Everywhere;
        assert!(store.get(scope, &key("a")).await.unwrap().is_none());
        // There is room again.
        let text = "DROP TRIGGER full_disk ON neap_outbox";
        pool.execute(text).await.unwrap();
        let etag = store.commit(commit()).await.unwrap()[0];
        let delete = neap_store::Write::Delete {
            key: key("a"),
            precondition: Precondition::Etag(etag),
        };
        store.commit(Commit::default().with(delete)).await.unwrap();
    }
}
