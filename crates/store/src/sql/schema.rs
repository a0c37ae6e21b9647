//! The tables, and which versions of the program can use them.
//!
//! A migration says which programs can use the tables after it: an older one that can goes on working
//! while processes are replaced one after the other, and one that cannot is refused.

use sqlx::Row;

use super::{Sql, dialect::Dialect, unavailable};
use crate::error::Error;

/// The schema of this program: the number of migrations.
const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// The first schema with gaps.
const GAPS_SINCE: i64 = 3;

struct Migration {
    /// The oldest schema whose programs can use the tables after this migration.
    readable_by: i64,
    both: &'static [&'static str],
    sqlite: &'static [&'static str],
    postgres: &'static [&'static str],
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        readable_by: 1,
        both: &[
            "CREATE TABLE neap_documents (
                collection TEXT NOT NULL, part TEXT NOT NULL, id TEXT NOT NULL,
                revision BIGINT NOT NULL, body TEXT NOT NULL, updated_at BIGINT NOT NULL,
                expires_at BIGINT, PRIMARY KEY (collection, part, id))",
            "CREATE INDEX neap_documents_expiry ON neap_documents (expires_at)
                WHERE expires_at IS NOT NULL",
            "CREATE TABLE neap_unique (
                collection TEXT NOT NULL, part TEXT NOT NULL, name TEXT NOT NULL,
                value TEXT NOT NULL, id TEXT NOT NULL,
                PRIMARY KEY (collection, part, name, value))",
            "CREATE INDEX neap_unique_holder ON neap_unique (collection, part, id)",
            "CREATE TABLE neap_work (
                collection TEXT NOT NULL, part TEXT NOT NULL, id TEXT NOT NULL,
                queue TEXT, not_before BIGINT NOT NULL, queued_at BIGINT NOT NULL,
                owner TEXT, fence BIGINT NOT NULL, expires_at BIGINT NOT NULL,
                dequeues BIGINT NOT NULL, PRIMARY KEY (collection, part, id))",
            "CREATE INDEX neap_work_waiting ON neap_work (collection, queue, queued_at)",
            "CREATE TABLE neap_changes (
                collection TEXT NOT NULL, part TEXT NOT NULL, id TEXT NOT NULL,
                txn BIGINT NOT NULL, revision BIGINT NOT NULL, deleted BIGINT NOT NULL,
                changed_at BIGINT NOT NULL, PRIMARY KEY (collection, part, id))",
            "CREATE INDEX neap_changes_order ON neap_changes (collection, txn, revision)",
        ],
        sqlite: &[
            "INSERT INTO neap_meta (name, value) VALUES ('revision', 0)",
            "CREATE TABLE neap_outbox (
                number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL,
                body TEXT NOT NULL, at BIGINT NOT NULL)",
            "CREATE TABLE neap_audit (
                number INTEGER PRIMARY KEY AUTOINCREMENT, actor TEXT NOT NULL,
                action TEXT NOT NULL, target TEXT NOT NULL, detail TEXT NOT NULL,
                at BIGINT NOT NULL)",
        ],
        postgres: &[
            "CREATE SEQUENCE neap_revision",
            "CREATE TABLE neap_outbox (
                number BIGSERIAL PRIMARY KEY, topic TEXT NOT NULL,
                body TEXT NOT NULL, at BIGINT NOT NULL)",
            "CREATE TABLE neap_audit (
                number BIGSERIAL PRIMARY KEY, actor TEXT NOT NULL,
                action TEXT NOT NULL, target TEXT NOT NULL, detail TEXT NOT NULL,
                at BIGINT NOT NULL)",
        ],
    },
    // The highest revision of a deletion that the feed has forgotten. Programs of schema 1 forget none.
    Migration {
        readable_by: 1,
        both: &["INSERT INTO neap_meta (name, value) VALUES ('purged', 0)"],
        sqlite: &[],
        postgres: &[],
    },
    // Where the numbers have jumped. Programs before schema 3 go on with the number of the last jump.
    Migration {
        readable_by: 1,
        both: &["CREATE TABLE neap_gaps (
                gap_from BIGINT NOT NULL, gap_to BIGINT NOT NULL PRIMARY KEY)"],
        sqlite: &[],
        postgres: &[],
    },
    // Lists are in the order of bytes, whatever the collation of the database. An index of its own and not
    // columns with that collation: PostgreSQL would end the prepared statements of older programs beside this.
    Migration {
        readable_by: 1,
        both: &[],
        sqlite: &[],
        postgres: &["CREATE INDEX neap_documents_in_order ON neap_documents
                (collection, part COLLATE \"C\", id COLLATE \"C\")"],
    },
];

impl Sql {
    /// Brings the tables to the schema of this program, or refuses those of a later one.
    pub(super) async fn create_or_upgrade(&self) -> Result<(), Error> {
        self.upgrade_to(SCHEMA).await
    }

    /// The same for a program of schema `ours`.
    pub(super) async fn upgrade_to(&self, ours: i64) -> Result<(), Error> {
        let mut transaction = self.begin().await?;
        if self.dialect == Dialect::Postgres {
            // Two programs that start at once upgrade one after the other.
            sqlx::query("SELECT pg_advisory_xact_lock(7305792)")
                .execute(&mut *transaction)
                .await
                .map_err(unavailable)?;
        }
        let table = "CREATE TABLE IF NOT EXISTS neap_meta (
            name TEXT PRIMARY KEY, value BIGINT NOT NULL)";
        sqlx::query(table)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
        let rows = sqlx::query("SELECT name, value FROM neap_meta")
            .fetch_all(&mut *transaction)
            .await
            .map_err(unavailable)?;
        let value = |name: &str| {
            let row = rows.iter().find(|row| row.get::<String, _>(0) == name);
            row.map_or(0, |row| row.get::<i64, _>(1))
        };
        let (found, readable_by) = (value("schema"), value("readable_by"));
        if found > ours && readable_by > ours {
            return Err(Error::TooNew {
                found,
                readable_by,
                ours,
            });
        }
        for (at, migration) in (1..=ours).zip(MIGRATIONS).skip(found.max(0) as usize) {
            let own = match self.dialect {
                Dialect::Sqlite => migration.sqlite,
                Dialect::Postgres => migration.postgres,
            };
            for statement in migration.both.iter().chain(own) {
                sqlx::query(*statement)
                    .execute(&mut *transaction)
                    .await
                    .map_err(unavailable)?;
            }
            for (name, value) in [("schema", at), ("readable_by", migration.readable_by)] {
                let upsert = "INSERT INTO neap_meta (name, value) VALUES ($1, $2)
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
                sqlx::query(upsert)
                    .bind(name)
                    .bind(value)
                    .execute(&mut *transaction)
                    .await
                    .map_err(unavailable)?;
            }
        }
        if ours >= GAPS_SINCE {
            self.jump(&mut transaction).await?;
        }
        transaction.commit().await.map_err(unavailable)
    }
}
