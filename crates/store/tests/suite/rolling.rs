//! Programs of several versions on one database, and a database that is opened again.

use neap_store::{Commit, Cursor, Error, Scope, Store};
use serde_json::json;
use tempfile::tempdir;

use crate::{THINGS, contract::key, on_sqlite, options};

#[tokio::test]
async fn a_feed_continues_after_a_restart() {
    let folder = tempdir().unwrap();
    let store = on_sqlite(&folder, "a").await;
    for id in ["a", "b"] {
        let commit = Commit::default().create(key(id), json!({}));
        store.commit(commit).await.unwrap();
    }
    let cursor = store
        .changes(THINGS, Cursor::default(), 1)
        .await
        .unwrap()
        .cursor;
    drop(store);
    let store = on_sqlite(&folder, "a").await;
    let changes = store.changes(THINGS, cursor, 9).await.unwrap().changes;
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].key, key("b"));
}

#[tokio::test]
async fn a_database_of_a_later_program_is_refused_with_the_way_out() {
    let folder = tempdir().unwrap();
    drop(on_sqlite(&folder, "a").await);
    let file = folder.path().join("a.db");
    let address = format!("sqlite://{}", file.display());
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(&address).await.unwrap();
    for (name, value) in [("schema", 90), ("readable_by", 80)] {
        sqlx::query("UPDATE neap_meta SET value = $2 WHERE name = $1")
            .bind(name)
            .bind(value)
            .execute(&pool)
            .await
            .unwrap();
    }
    let opened = Store::open(&format!("sqlite:{}", file.display()), options()).await;
    let error = opened.unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 90, .. }), "{error}");
    assert!(
        error.to_string().contains("start a newer version"),
        "{error}"
    );
    // A later schema that this program can use is used.
    sqlx::query("UPDATE neap_meta SET value = 1 WHERE name = 'readable_by'")
        .execute(&pool)
        .await
        .unwrap();
    let store = on_sqlite(&folder, "a").await;
    assert!(
        store
            .get(Scope::Everywhere, &key("a"))
            .await
            .unwrap()
            .is_none()
    );
}
