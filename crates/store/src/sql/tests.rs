//! What a test can only do from inside: lose answers, and be an older program.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::{Dialect, Sql};
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

#[tokio::test]
async fn a_program_of_the_version_before_works_on_the_tables_of_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let sql = sql(&folder).await;
    // Migration 2 says that programs of schema 1 can use its tables.
    sql.upgrade_to(1).await.unwrap();
    let create = Commit::default().create(key("a"), json!({}));
    sql.commit(create).await.unwrap();
    assert_eq!(sql.dialect, Dialect::Sqlite);
}
