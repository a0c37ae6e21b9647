//! A database and the keys that it was used with.

use neap_store::{Commit, Error, KeyRing, Scope, Store, StoreOptions};
use serde_json::json;
use sqlx::{AnyPool, Executor};

use crate::{SECURE, contract::key, postgres::Postgres};

async fn open(address: &str, keys: &[(&str, u8)]) -> Result<Store, Error> {
    let keys = keys
        .iter()
        .map(|(version, byte)| ((*version).to_owned(), [*byte; 32]));
    let keys = KeyRing::new(keys).unwrap();
    let secure = SECURE;
    Store::open(address, StoreOptions { keys, secure }).await
}

/// A database refuses a key that is not the one of its version, and takes further versions.
async fn only_its_own_keys_open_a_database(address: &str) {
    let store = open(address, &[("1", 1)]).await.unwrap();
    let secret = Commit::default().create(key("a"), json!({"secret": "hush"}));
    store.commit(secret).await.unwrap();
    drop(store);
    let error = open(address, &[("1", 2)]).await.unwrap_err();
    assert!(
        matches!(&error, Error::OtherKey(version) if version == "1"),
        "{error}"
    );
    assert!(error.to_string().contains("restore it"), "{error}");
    open(address, &[("2", 2), ("1", 1)]).await.unwrap();
    let error = open(address, &[("2", 3), ("1", 1)]).await.unwrap_err();
    assert!(
        matches!(&error, Error::OtherKey(version) if version == "2"),
        "{error}"
    );
    // A process that does not have the second version yet goes on.
    let store = open(address, &[("1", 1)]).await.unwrap();
    let found = store.get(Scope::Everywhere, &key("a")).await.unwrap();
    assert_eq!(store.reveal(&found.unwrap()).unwrap()["secret"], "hush");
    // A database of a program that recorded no fingerprints.
    let pool = AnyPool::connect(address).await.unwrap();
    let forget = "DELETE FROM neap_meta WHERE name LIKE 'key:%'";
    pool.execute(forget).await.unwrap();
    let error = open(address, &[("1", 2)]).await.unwrap_err();
    assert!(matches!(error, Error::OtherKey(_)), "{error}");
    // Its key is lost, and the operator begins with another one: what was sealed stays sealed.
    let store = open(address, &[("3", 3)]).await.unwrap();
    let found = store.get(Scope::Everywhere, &key("a")).await.unwrap();
    let error = store.reveal(&found.unwrap()).unwrap_err();
    assert!(matches!(error, Error::Sealed { .. }), "{error}");
    open(address, &[("3", 3), ("1", 1)]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_own_keys_open_a_database_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("a.db").display());
    only_its_own_keys_open_a_database(&address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_own_keys_open_a_database_of_postgresql() {
    let Some(postgres) = Postgres::start("only_its_own_keys_open_a_database_of_postgresql") else {
        return;
    };
    postgres.create("keys").await;
    only_its_own_keys_open_a_database(&postgres.address_of("keys")).await;
}
