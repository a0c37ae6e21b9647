//! One suite for the store in memory, on SQLite and on a real PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed; writers and readers run beside each other"
)]

mod contract;
mod crowd;
mod cut;
mod keys;
mod kills;
mod postgres;
mod postgresql_only;
mod restored;
mod rolling;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use neap_store::{AuditRow, Commit, KeyRing, SecureFields, Store, StoreOptions};

use self::postgres::Postgres;

/// The collection of the tests, with one secure field.
const THINGS: &str = "things";
const SECURE: &[SecureFields] = &[SecureFields {
    collection: THINGS,
    paths: &["/secret"],
}];

fn options() -> StoreOptions {
    let keys = KeyRing::new([("1".to_owned(), [7; 32])]).unwrap();
    StoreOptions {
        keys,
        secure: SECURE,
    }
}

/// A store in memory, whose clock advances with each call.
fn in_memory() -> Store {
    let now = Arc::new(AtomicI64::new(1_000_000));
    Store::in_memory(
        options(),
        Arc::new(move || now.fetch_add(1, Ordering::Relaxed)),
    )
}

async fn on_sqlite(folder: &tempfile::TempDir, name: &str) -> Store {
    let file = folder.path().join(format!("{name}.db"));
    let address = format!("sqlite:{}", file.display());
    Store::open(&address, options()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_in_memory_keeps_the_contract() {
    for (name, contract) in contract::ALL {
        eprintln!("{name}");
        contract(in_memory()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_on_sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, contract) in contract::ALL {
        eprintln!("{name}");
        contract(on_sqlite(&folder, name).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_on_postgresql_keeps_the_contract() {
    let Some(postgres) = Postgres::start("the_store_on_postgresql_keeps_the_contract") else {
        return;
    };
    for (name, contract) in contract::ALL {
        eprintln!("{name}");
        contract(postgres.store(name).await).await;
    }
}

/// The order of texts in such a database is that of a language, and not that of their bytes.
#[tokio::test(flavor = "multi_thread")]
async fn the_store_on_postgresql_with_a_language_keeps_the_contract() {
    let test = "the_store_on_postgresql_with_a_language_keeps_the_contract";
    let language = [
        "--locale-provider=icu",
        "--icu-locale=en",
        "--encoding=UTF8",
    ];
    let Some(postgres) = Postgres::start_with(test, &language) else {
        return;
    };
    for (name, contract) in contract::ALL {
        eprintln!("{name}");
        contract(postgres.store(name).await).await;
    }
}

#[tokio::test]
async fn rows_of_the_audit_in_memory_are_kept_for_400_days() {
    const DAY: i64 = 24 * 3_600_000;
    let now = Arc::new(AtomicI64::new(0));
    let clock = now.clone();
    let store = Store::in_memory(options(), Arc::new(move || clock.load(Ordering::Relaxed)));
    for (day, action) in [(0, "first"), (2, "second")] {
        now.store(day * DAY, Ordering::Relaxed);
        let action = action.to_owned();
        let row = AuditRow {
            action,
            ..AuditRow::default()
        };
        store.commit(Commit::default().audit(row)).await.unwrap();
    }
    now.store(401 * DAY, Ordering::Relaxed);
    store.expire().await.unwrap();
    let left = store.audit(9).await.unwrap();
    assert_eq!((left.len(), &*left[0].action), (1, "second"));
}
