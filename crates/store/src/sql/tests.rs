//! What a test can only do from inside: lose answers, and be an older program.

use std::sync::atomic::Ordering;

use serde_json::json;
use sqlx::{Executor, Row};

use super::Sql;
use crate::{
    commit::{Commit, Precondition},
    document::{DocumentKey, Partition},
    error::Error,
};

async fn sql(folder: &tempfile::TempDir) -> Sql {
    let address = format!("sqlite:{}", folder.path().join("a.db").display());
    Sql::open(&address).await.unwrap()
}

fn key(id: &str) -> DocumentKey {
    DocumentKey::new("things", &Partition::subscription("s"), id)
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let sql = sql(&folder).await;
    sql.lose_commit_answers.store(true, Ordering::Relaxed);
    let create = Commit::default().create(key("a"), json!({}));
    let etag = sql.commit(create).await.unwrap()[0];
    let found = sql.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(found.etag, etag);

    // A deletion leaves no version to recognise it by: the caller is told, and reads.
    sql.lose_commit_answers.store(true, Ordering::Relaxed);
    let delete = Commit::default().with(crate::Write::Delete {
        key: key("a"),
        precondition: Precondition::Etag(etag),
    });
    let error = sql.commit(delete).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
    assert!(sql.get(&key("a")).await.unwrap().is_none());
}

/// Adds one to a counter. Returns its new version.
async fn increment(sql: &Sql) -> crate::Etag {
    let found = sql.get(&key("a")).await.unwrap().unwrap();
    let n = found.body["n"].as_i64().unwrap() + 1;
    let commit = Commit::default().put(key("a"), Precondition::Etag(found.etag), json!({"n": n}));
    sql.commit(commit).await.unwrap()[0]
}

#[tokio::test]
async fn a_program_of_the_version_before_works_beside_this_one() {
    for before in [2, 3] {
        works_beside_one_of_schema(before).await;
    }
}

async fn works_beside_one_of_schema(schema: i64) {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("a.db").display());
    // It made the tables, and knows nothing of those of this version.
    let before = Sql::connect(&address).await.unwrap();
    before.upgrade_to(schema).await.unwrap();
    let create = Commit::default().create(key("a"), json!({"n": 0}));
    let mut last = before.commit(create).await.unwrap()[0];
    let this = Sql::open(&address).await.unwrap();
    for turn in 0..6 {
        let sql = if turn % 2 == 0 { &this } else { &before };
        let etag = increment(sql).await;
        assert!(etag > last, "{etag} after {last}");
        last = etag;
    }
    // It is started again beside this one.
    let again = Sql::connect(&address).await.unwrap();
    again.upgrade_to(schema).await.unwrap();
    assert!(increment(&again).await > last);
    let read = this.changes("things", crate::Cursor::default(), 9).await;
    let read = read.unwrap();
    assert_eq!(read.changes[0].document.as_ref().unwrap().body["n"], 7);
    increment(&again).await;
    let next = this.changes("things", read.cursor, 9).await.unwrap();
    assert_eq!(next.changes.len(), 1);
}

#[tokio::test]
async fn rows_of_the_audit_are_kept_for_400_days() {
    const DAY: i64 = 24 * 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let sql = sql(&folder).await;
    for action in ["first", "second", "third"] {
        let action = action.to_owned();
        let row = crate::AuditRow {
            action,
            ..crate::AuditRow::default()
        };
        sql.commit(Commit::default().audit(row)).await.unwrap();
    }
    let age = |action: &str, days: i64| {
        let text = "UPDATE neap_audit SET at = at - $2 WHERE action = $1";
        let query = sqlx::query(text).bind(action.to_owned()).bind(days * DAY);
        query.execute(&sql.writer)
    };
    age("first", 401).await.unwrap();
    age("second", 399).await.unwrap();
    sql.expire().await.unwrap();
    let left = sql.audit(9).await.unwrap();
    let left: Vec<_> = left.iter().map(|row| &*row.action).collect();
    assert_eq!(left, ["second", "third"]);
}

#[tokio::test]
async fn a_full_sqlite_is_told_and_works_again_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let sql = sql(&folder).await;
    let large = |id: &str| {
        Commit::default()
            .create(key(id), json!({"text": "x".repeat(3000)}))
            .create(key(&format!("{id}-beside")), json!({}))
            .announce("topic", json!({}))
    };
    sql.commit(large("first")).await.unwrap();
    // The pool of SQLite has one connection that writes, so that the limit concerns every write.
    sql.writer
        .execute("PRAGMA max_page_count = 60")
        .await
        .unwrap();
    let mut written = 1;
    let error = loop {
        match sql.commit(large(&format!("n{written}"))).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 500, "it is never full");
    };
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    let refused = format!("n{written}");
    for id in [refused.clone(), format!("{refused}-beside")] {
        assert!(sql.get(&key(&id)).await.unwrap().is_none(), "{id}");
    }
    assert_eq!(sql.outbox(1000).await.unwrap().len(), written);
    sql.writer
        .execute("PRAGMA max_page_count = 10000")
        .await
        .unwrap();
    sql.commit(large(&refused)).await.unwrap();
    assert_eq!(sql.outbox(1000).await.unwrap().len(), written + 1);
}

#[tokio::test]
async fn a_transaction_that_the_database_has_ended_by_itself_blocks_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let sql = sql(&folder).await;
    // As SQLite does when the disk is full: the driver does not know of it.
    let mut tx = sql.begin().await.unwrap();
    tx.execute("ROLLBACK").await.unwrap();
    drop(tx);
    let create = Commit::default().create(key("a"), json!({}));
    sql.commit(create).await.unwrap();
}

#[tokio::test]
async fn only_the_newest_jumps_are_kept_and_readers_of_before_list_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = sql(&folder).await;
    first
        .commit(Commit::default().create(key("a"), json!({})))
        .await
        .unwrap();
    let start = crate::Cursor::default();
    let old = first.changes("things", start, 9).await.unwrap().cursor;
    let mut first_after = None;
    // The clock of SQLite has milliseconds, so that some of these do nothing.
    let mut gaps = Vec::new();
    for _ in 0..100_000 {
        let mut tx = first.begin().await.unwrap();
        first.jump(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        let text = "SELECT gap_to FROM neap_gaps ORDER BY gap_to";
        let rows = sqlx::query(text).fetch_all(&first.reader).await.unwrap();
        gaps = rows.iter().map(|row| row.get::<i64, _>(0)).collect();
        let newest = gaps.last().copied().filter(|it| *it > old.newest());
        first_after = first_after.or(newest);
        if first_after.is_some_and(|it| it < gaps[0]) {
            break;
        }
    }
    assert_eq!(gaps.len(), 256);
    let error = first.changes("things", old, 9).await.unwrap_err();
    assert!(matches!(error, Error::FeedExpired), "{error}");
    // One that begins anew stays, although nothing of its collection has changed since.
    let new = first.changes("things", start, 9).await.unwrap().cursor;
    first.changes("things", new, 9).await.unwrap();
}
