//! Numbers that no state of the database has given out before.
//!
//! A database that is restored from a backup goes back in time: it would give numbers again that etags,
//! fences and readers of the change feed have from before. So at each start the numbers jump to the time
//! of the database in microseconds, which is more than the number of writes ever was. What a jump leaves
//! out is a gap. A reader whose position is in a gap has perhaps read changes that the database has lost,
//! and is told to list again.

use sqlx::{Any, AssertSqlSafe, Row, Transaction};

use super::{Sql, dialect::Dialect, unavailable};
use crate::error::Error;

/// Connections that are made within this time, in microseconds, share a jump.
const RECONNECT_INTERVAL: i64 = 10_000_000;

/// Statements that forget all but the newest gaps. A reader from before those must list again.
const FORGET: [&str; 2] = [
    "UPDATE neap_meta
        SET value = (SELECT gap_to FROM neap_gaps ORDER BY gap_to DESC LIMIT 1 OFFSET 256)
        WHERE name = 'purged'
          AND value < (SELECT gap_to FROM neap_gaps ORDER BY gap_to DESC LIMIT 1 OFFSET 256)",
    "DELETE FROM neap_gaps
        WHERE gap_to <= (SELECT gap_to FROM neap_gaps ORDER BY gap_to DESC LIMIT 1 OFFSET 256)",
];

/// The jump on PostgreSQL, unless another one was made within `interval` microseconds. It does nothing
/// before there are tables.
fn jump_on_postgres(interval: i64) -> String {
    let [forget_position, forget_gaps] = FORGET;
    format!(
        "DO $$ DECLARE given BIGINT; ours BIGINT; newest BIGINT;
        BEGIN
            IF to_regclass('neap_gaps') IS NULL THEN RETURN; END IF;
            PERFORM pg_advisory_xact_lock(7305793);
            SELECT last_value INTO given FROM neap_revision;
            ours := CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT);
            IF given >= ours - {interval} THEN RETURN; END IF;
            newest := given;
            -- A row that another transaction has written than the one it names was loaded, by pg_restore
            -- for example. Its number says nothing here and may hide it behind the horizon. A reader
            -- may have read what was written while the dump was made: all positions are void.
            IF EXISTS (SELECT 1 FROM neap_changes
                WHERE txn <> 0 AND txn % 4294967296 <> CAST(CAST(xmin AS TEXT) AS BIGINT)) THEN
                UPDATE neap_changes SET txn = 0;
                newest := 0;
            END IF;
            INSERT INTO neap_gaps (gap_from, gap_to) VALUES (newest, ours);
            PERFORM setval('neap_revision', ours);
            {forget_position};
            {forget_gaps};
        END $$"
    )
}

impl Dialect {
    /// The jump for a new connection: the server may have been restored since the last one.
    pub(super) fn on_reconnect(self) -> Option<AssertSqlSafe<String>> {
        let is_server = self == Self::Postgres;
        is_server.then(|| AssertSqlSafe(jump_on_postgres(RECONNECT_INTERVAL)))
    }
}

impl Sql {
    /// Makes the numbers jump, at the start of a program.
    pub(super) async fn jump(&self, tx: &mut Transaction<'static, Any>) -> Result<(), Error> {
        if self.dialect == Dialect::Postgres {
            let jump = sqlx::query(AssertSqlSafe(jump_on_postgres(0)));
            return jump.execute(&mut **tx).await.map(drop).map_err(unavailable);
        }
        let text = "SELECT value, CAST(unixepoch('subsec') * 1000000 AS BIGINT)
            FROM neap_meta WHERE name = 'revision'";
        let row = sqlx::query(text).fetch_one(&mut **tx).await;
        let row = row.map_err(unavailable)?;
        let (given, ours): (i64, i64) = (row.get(0), row.get(1));
        if given >= ours {
            return Ok(());
        }
        sqlx::query("INSERT INTO neap_gaps (gap_from, gap_to) VALUES ($1, $2)")
            .bind(given)
            .bind(ours)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        sqlx::query("UPDATE neap_meta SET value = $1 WHERE name = 'revision'")
            .bind(ours)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        for statement in FORGET {
            let forgotten = sqlx::query(statement).execute(&mut **tx).await;
            forgotten.map_err(unavailable)?;
        }
        Ok(())
    }
}
