//! A database that is replaced by an older backup of itself, while programs remember what came after.

use std::path::Path;

use neap_store::{Commit, Cursor, Error, Etag, Lease, Precondition, Scope, Store, Write};
use serde_json::json;
use sqlx::{AnyPool, AssertSqlSafe, Executor, PgPool};
use tempfile::tempdir;

use crate::{
    THINGS,
    contract::{WORK, key, put},
    on_sqlite, options,
    postgres::Postgres,
};

/// More writes than a database has between the backup and its loss.
const WRITES: i64 = 30;

/// What programs remember of the database that is lost.
struct Remembered {
    /// A version of `b` that is not in the backup.
    lost: Etag,
    /// The lease of a worker that goes on.
    lease: Lease,
    /// A reader that has read what is not in the backup, and one that has not.
    ahead: Cursor,
    behind: Cursor,
}

async fn position(store: &Store) -> Cursor {
    let read = store.changes(THINGS, Cursor::default(), 99).await.unwrap();
    read.cursor
}

async fn replace(store: &Store, id: &str, etag: Etag, n: i64) -> Result<Etag, Error> {
    let commit = Commit::default().put(key(id), Precondition::Etag(etag), json!({"n": n}));
    Ok(store.commit(commit).await?[0])
}

async fn etag(store: &Store, id: &str) -> Etag {
    let found = store.get(Scope::Everywhere, &key(id)).await.unwrap();
    found.unwrap().etag
}

/// What is in the backup. Returns the position of a reader.
async fn before_the_backup(store: &Store) -> Cursor {
    let create = put(key("a"), Precondition::Absent, WORK);
    store.commit(Commit::default().with(create)).await.unwrap();
    for id in ["b", "deleted later"] {
        let create = Commit::default().create(key(id), json!({"n": 0}));
        store.commit(create).await.unwrap();
    }
    position(store).await
}

async fn after_the_backup(store: &Store, behind: Cursor) -> Remembered {
    let mut lost = etag(store, "b").await;
    for n in 1..5 {
        lost = replace(store, "b", lost, n).await.unwrap();
    }
    let delete = Write::Delete {
        key: key("deleted later"),
        precondition: Precondition::Etag(etag(store, "deleted later").await),
    };
    store.commit(Commit::default().with(delete)).await.unwrap();
    let claimed = store.claim(THINGS, "work", "one", 600_000).await.unwrap();
    let lease = claimed.unwrap().lease;
    let create = Commit::default().create(key("created later"), json!({}));
    store.commit(create).await.unwrap();
    let ahead = position(store).await;
    Remembered {
        lost,
        lease,
        ahead,
        behind,
    }
}

async fn nothing_of_before_is_taken_for_now(restored: &Store, remembered: &Remembered) {
    let Remembered { lost, lease, .. } = remembered;
    // A reader of the lost database has seen changes that are no more.
    let error = restored.changes(THINGS, remembered.ahead, 9).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::FeedExpired), "{error}");
    // No number is given out again, whatever happens to the document.
    for turn in 0..WRITES {
        let now = etag(restored, "b").await;
        let error = replace(restored, "b", *lost, 100).await.unwrap_err();
        assert!(matches!(error, Error::Conflict(_)), "{error}");
        let now = replace(restored, "b", now, turn).await.unwrap();
        assert_ne!(now, *lost);
        let claimed = restored.claim(THINGS, "work", "two", 600_000).await;
        let claimed = claimed.unwrap().unwrap();
        let precondition = Precondition::Lease(lease.clone());
        let late = Commit::default().put(key("a"), precondition, json!({"late": true}));
        for error in [
            restored.commit(late).await.unwrap_err(),
            restored.renew(lease, 600_000).await.unwrap_err(),
            restored.release(lease, 0).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::LeaseLost(_)), "{error}");
        }
        restored.renew(&claimed.lease, 600_000).await.unwrap();
        restored.release(&claimed.lease, 0).await.unwrap();
    }
    let error = restored.changes(THINGS, remembered.ahead, 9).await;
    assert!(matches!(error.unwrap_err(), Error::FeedExpired));
    feeds_are_whole(restored).await;
}

/// A reader that begins anew sees what there is, and goes on from there.
async fn feeds_are_whole(restored: &Store) {
    let read = restored.changes(THINGS, Cursor::default(), 99).await;
    let read = read.unwrap();
    let mut ids: Vec<_> = read.changes.into_iter().map(|it| it.key.id).collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "deleted later"]);
    let create = Commit::default().create(key("newest"), json!({}));
    restored.commit(create).await.unwrap();
    let mut cursor = read.cursor;
    // On a server the change is behind the horizon for a moment.
    let change = loop {
        let mut read = restored.changes(THINGS, cursor, 9).await.unwrap();
        cursor = read.cursor;
        if let Some(change) = read.changes.pop() {
            break change;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(change.key, key("newest"));
    assert!(restored.changes(THINGS, cursor, 9).await.is_ok());
}

async fn back_up(file: &Path, to: &Path) {
    sqlx::any::install_default_drivers();
    let pool = AnyPool::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    let text = format!("VACUUM INTO '{}'", to.display());
    pool.execute(AssertSqlSafe(text)).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_restored_sqlite_gives_no_number_again() {
    let folder = tempdir().unwrap();
    let lost = on_sqlite(&folder, "lost").await;
    let behind = before_the_backup(&lost).await;
    let file = |name: &str| folder.path().join(name);
    back_up(&file("lost.db"), &file("backup.db")).await;
    let remembered = after_the_backup(&lost, behind).await;
    drop(lost);
    let restored = on_sqlite(&folder, "backup").await;
    nothing_of_before_is_taken_for_now(&restored, &remembered).await;
    // What a reader had read before the backup is still so.
    let read = restored.changes(THINGS, remembered.behind, 99).await;
    assert!(read.unwrap().changes.iter().any(|it| it.key == key("b")));
}

/// Makes the database `copy` of the database `of`, to which no client is connected.
async fn copy(admin: &PgPool, of: &str, copy: &str) {
    let text = format!("CREATE DATABASE {copy} TEMPLATE {of}");
    while let Err(error) = admin.execute(AssertSqlSafe(text.clone())).await {
        // Connections end a moment after the pool is dropped.
        let error_code = error.as_database_error();
        let is_used = error_code.and_then(sqlx::error::DatabaseError::code);
        assert_eq!(is_used.as_deref(), Some("55006"), "{error}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_postgresql_gives_no_number_again() {
    let Some(postgres) = Postgres::start("a_restored_postgresql_gives_no_number_again") else {
        return;
    };
    let lost = postgres.store("lost").await;
    let behind = before_the_backup(&lost).await;
    drop(lost);
    let admin = PgPool::connect(&postgres.address()).await.unwrap();
    copy(&admin, "lost", "same").await;
    copy(&admin, "lost", "loaded").await;
    let open = async |name: &str| {
        let address = postgres.address_of(name);
        Store::open(&address, options()).await.unwrap()
    };
    let lost = open("lost").await;
    let remembered = after_the_backup(&lost, behind).await;
    nothing_of_before_is_taken_for_now(&open("same").await, &remembered).await;

    // As loaded from a dump: no row was written by the transaction that it names, which is one of the future
    // in this server.
    let pool = PgPool::connect(&postgres.address_of("loaded"))
        .await
        .unwrap();
    let text = "UPDATE neap_changes SET txn = txn + 1000000000";
    pool.execute(text).await.unwrap();
    pool.close().await;
    let loaded = open("loaded").await;
    let error = loaded.changes(THINGS, remembered.behind, 9).await;
    assert!(matches!(error.unwrap_err(), Error::FeedExpired));
    nothing_of_before_is_taken_for_now(&loaded, &remembered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_was_connected_when_its_server_was_restored_uses_new_numbers() {
    let test = "a_program_that_was_connected_when_its_server_was_restored";
    let Some(postgres) = Postgres::start(test) else {
        return;
    };
    let store = postgres.store("connected").await;
    before_the_backup(&store).await;
    let pool = PgPool::connect(&postgres.address_of("connected"))
        .await
        .unwrap();
    // As a restored server does: its connections end, and the numbers are those of long ago.
    pool.execute("SELECT setval('neap_revision', 1000)")
        .await
        .unwrap();
    let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'neap-store'";
    while pool.fetch_optional(text).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    let create = Commit::default().create(key("later"), json!({}));
    let made = loop {
        match store.commit(create.clone()).await {
            Ok(etags) => break etags[0],
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert!(made > etag(&store, "b").await);
}
