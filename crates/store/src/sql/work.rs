//! Queues and leases.

use sqlx::{Any, Row, Transaction};

use super::{Sql, dialect::Dialect, read::document, unavailable};
use crate::{
    document::{Claimed, DocumentKey, Lease, WorkState},
    error::Error,
};

impl Sql {
    pub(crate) async fn claim(
        &self,
        collection: &'static str,
        queue: &str,
        owner: &str,
        duration: i64,
    ) -> Result<Option<Claimed>, Error> {
        let mut tx = self.begin().await?;
        // A partition with many claims waits for one with few.
        let text = "SELECT w.part, w.id FROM neap_work w
            LEFT JOIN (SELECT part, count(*) AS n FROM neap_work
                WHERE collection = $1 AND owner IS NOT NULL AND expires_at > {now}
                GROUP BY part) b ON b.part = w.part
            WHERE w.collection = $1 AND w.queue = $2 AND w.not_before <= {now}
              AND w.expires_at <= {now}
            ORDER BY coalesce(b.n, 0), w.queued_at LIMIT 1 {skip_locked}";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(collection)
            .bind(queue)
            .fetch_optional(&mut *tx)
            .await
            .map_err(unavailable)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let (part, id): (String, String) = (row.get(0), row.get(1));
        if self.dialect == Dialect::Sqlite {
            sqlx::query("UPDATE neap_meta SET value = value + 1 WHERE name = 'revision'")
                .execute(&mut *tx)
                .await
                .map_err(unavailable)?;
        }
        let text = "UPDATE neap_work SET owner = $4, fence = {revision},
                expires_at = {now} + $5, dequeues = dequeues + 1
            WHERE collection = $1 AND part = $2 AND id = $3
            RETURNING fence, dequeues";
        let claimed = sqlx::query(self.dialect.sql(text))
            .bind(collection)
            .bind(&part)
            .bind(&id)
            .bind(owner)
            .bind(duration)
            .fetch_one(&mut *tx)
            .await
            .map_err(unavailable)?;
        let text = "SELECT part, id, revision, body, updated_at FROM neap_documents
            WHERE collection = $1 AND part = $2 AND id = $3";
        let row = sqlx::query(text)
            .bind(collection)
            .bind(&part)
            .bind(&id)
            .fetch_optional(&mut *tx)
            .await
            .map_err(unavailable)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let document = document(collection, &row)?;
        tx.commit().await.map_err(unavailable)?;
        let lease = Lease {
            key: document.key.clone(),
            owner: owner.to_owned(),
            fence: claimed.get(0),
            dequeues: claimed.get(1),
        };
        Ok(Some(Claimed { document, lease }))
    }

    pub(crate) async fn renew(&self, lease: &Lease, duration: i64) -> Result<(), Error> {
        let text = "UPDATE neap_work SET expires_at = {now} + $5
            WHERE collection = $1 AND part = $2 AND id = $3 AND fence = $4 AND owner IS NOT NULL";
        self.change_lease(text, lease, duration).await
    }

    pub(crate) async fn release(&self, lease: &Lease, delay: i64) -> Result<(), Error> {
        let text = "UPDATE neap_work SET owner = NULL, expires_at = 0, not_before = {now} + $5
            WHERE collection = $1 AND part = $2 AND id = $3 AND fence = $4 AND owner IS NOT NULL";
        self.change_lease(text, lease, delay).await
    }

    async fn change_lease(&self, text: &str, lease: &Lease, time: i64) -> Result<(), Error> {
        let held = sqlx::query(self.dialect.sql(text))
            .bind(lease.key.collection)
            .bind(lease.key.partition.name())
            .bind(&lease.key.id)
            .bind(lease.fence)
            .bind(time)
            .execute(&self.writer)
            .await
            .map_err(unavailable)?;
        if held.rows_affected() == 0 {
            return Err(Error::LeaseLost(lease.key.to_string()));
        }
        Ok(())
    }

    pub(crate) async fn work(&self, key: &DocumentKey) -> Result<WorkState, Error> {
        let text = "SELECT queue, CASE WHEN expires_at > {now} THEN owner ELSE NULL END, dequeues
            FROM neap_work WHERE collection = $1 AND part = $2 AND id = $3";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .fetch_optional(&self.reader)
            .await
            .map_err(unavailable)?;
        Ok(row.map_or_else(WorkState::default, |row| WorkState {
            queue: row.get(0),
            owner: row.get(1),
            dequeues: row.get(2),
        }))
    }

    pub(crate) async fn queue_length(&self, collection: &str, queue: &str) -> Result<i64, Error> {
        let text = "SELECT count(*) FROM neap_work WHERE collection = $1 AND queue = $2";
        let row = sqlx::query(text)
            .bind(collection)
            .bind(queue)
            .fetch_one(&self.reader)
            .await
            .map_err(unavailable)?;
        Ok(row.get(0))
    }

    pub(crate) async fn next_claim(
        &self,
        collection: &str,
        queue: &str,
    ) -> Result<Option<i64>, Error> {
        let text =
            "SELECT min(CASE WHEN not_before > expires_at THEN not_before ELSE expires_at END)
                - {now}
            FROM neap_work WHERE collection = $1 AND queue = $2";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(collection)
            .bind(queue)
            .fetch_one(&self.reader)
            .await
            .map_err(unavailable)?;
        Ok(row.get(0))
    }

    /// Removes what is beside an expired document, whose collection is known by name only.
    pub(super) async fn forget_named(
        &self,
        tx: &mut Transaction<'static, Any>,
        collection: &str,
        part: &str,
        id: &str,
    ) -> Result<(), Error> {
        for table in ["neap_unique", "neap_work"] {
            let text =
                format!("DELETE FROM {table} WHERE collection = $1 AND part = $2 AND id = $3");
            sqlx::query(self.dialect.sql(&text))
                .bind(collection)
                .bind(part)
                .bind(id)
                .execute(&mut **tx)
                .await
                .map_err(unavailable)?;
        }
        self.advance_revision(tx).await?;
        let text = "UPDATE neap_changes SET txn = {transaction}, revision = {revision},
                deleted = 1, changed_at = {now}
            WHERE collection = $1 AND part = $2 AND id = $3";
        sqlx::query(self.dialect.sql(text))
            .bind(collection)
            .bind(part)
            .bind(id)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        Ok(())
    }
}
