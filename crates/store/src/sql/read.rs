//! Reads of documents, changes, outbox and audit.

use sqlx::{Row, any::AnyRow};

use super::{Sql, unavailable};
use crate::{
    commit::AuditRow,
    document::{Change, Changes, Cursor, Document, DocumentKey, Etag, ListRequest, Partition},
    error::Error,
    memory::{AUDIT_RETENTION, TOMBSTONE_RETENTION},
};

/// How many expired documents and old rows of the audit one transaction removes.
const EXPIRY_BATCH: i64 = 200;

/// A text greater than every id that begins with the prefix before it.
const AFTER_EVERY_ID: &str = "\u{10ffff}";

impl Sql {
    pub(crate) async fn get(&self, key: &DocumentKey) -> Result<Option<Document>, Error> {
        let text = "SELECT part, id, revision, body, updated_at FROM neap_documents
            WHERE collection = $1 AND part = $2 AND id = $3
              AND (expires_at IS NULL OR expires_at > {now})";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .fetch_optional(&self.reader)
            .await
            .map_err(unavailable)?;
        row.map(|row| document(key.collection, &row)).transpose()
    }

    pub(crate) async fn list(&self, request: &ListRequest<'_>) -> Result<Vec<Document>, Error> {
        let (after_part, after_id) = request.after.unwrap_or(("", ""));
        let rows = if let Some(part) = request.scope.name() {
            let text = "SELECT part, id, revision, body, updated_at FROM neap_documents
                    WHERE collection = $1 AND part {bytes} = $2
                      AND id {bytes} >= $3 AND id {bytes} < $4 AND id {bytes} > $5
                      AND (expires_at IS NULL OR expires_at > {now})
                    ORDER BY id {bytes} LIMIT $6";
            sqlx::query(self.dialect.sql(text))
                .bind(request.collection)
                .bind(part)
                .bind(request.prefix)
                .bind(format!("{}{AFTER_EVERY_ID}", request.prefix))
                .bind(after_id)
                .bind(request.limit as i64)
                .fetch_all(&self.reader)
                .await
        } else {
            let text = "SELECT part, id, revision, body, updated_at FROM neap_documents
                    WHERE collection = $1 AND (part {bytes}, id {bytes}) > ($2, $3)
                      AND id {bytes} >= $4 AND id {bytes} < $5
                      AND (expires_at IS NULL OR expires_at > {now})
                    ORDER BY part {bytes}, id {bytes} LIMIT $6";
            sqlx::query(self.dialect.sql(text))
                .bind(request.collection)
                .bind(after_part)
                .bind(after_id)
                .bind(request.prefix)
                .bind(format!("{}{AFTER_EVERY_ID}", request.prefix))
                .bind(request.limit as i64)
                .fetch_all(&self.reader)
                .await
        };
        let rows = rows.map_err(unavailable)?;
        rows.iter()
            .map(|row| document(request.collection, row))
            .collect()
    }

    pub(crate) async fn changes(
        &self,
        collection: &'static str,
        after: Cursor,
        limit: usize,
    ) -> Result<Changes, Error> {
        // Read before the changes, so that it is no newer than they are.
        let seen = self.check_cursor(after).await?;
        let text = "SELECT c.part, c.id, d.revision, d.body, d.updated_at, c.txn, c.revision
            FROM neap_changes c LEFT JOIN neap_documents d
              ON d.collection = c.collection AND d.part = c.part AND d.id = c.id
             AND (d.expires_at IS NULL OR d.expires_at > {now})
            WHERE c.collection = $1 AND (c.txn, c.revision) > ($2, $3) AND c.txn < {horizon}
            ORDER BY c.txn, c.revision LIMIT $4";
        let rows = sqlx::query(self.dialect.sql(text))
            .bind(collection)
            .bind(after.transaction)
            .bind(after.revision)
            .bind(limit as i64)
            .fetch_all(&self.reader)
            .await
            .map_err(unavailable)?;
        let mut cursor = Cursor { seen, ..after };
        let mut changes = Vec::with_capacity(rows.len());
        for row in &rows {
            cursor = Cursor {
                transaction: row.get(5),
                revision: row.get(6),
                seen,
            };
            let partition = Partition::from_name(row.get(0));
            let key = DocumentKey::new(collection, &partition, row.get::<String, _>(1));
            let exists = row.get::<Option<i64>, _>(2).is_some();
            let document = exists.then(|| document(collection, row)).transpose()?;
            changes.push(Change { key, document });
        }
        Ok(Changes { changes, cursor })
    }

    /// Refuses a position from which changes are forgotten, and one that this database has never reached
    /// because it was restored from a backup. Returns the newest number.
    async fn check_cursor(&self, after: Cursor) -> Result<i64, Error> {
        let text = "SELECT CAST({last_revision} AS BIGINT),
            (SELECT value FROM neap_meta WHERE name = 'purged'),
            (SELECT count(*) FROM neap_gaps WHERE gap_from < $1 AND $1 < gap_to)";
        let newest = after.newest();
        let row = sqlx::query(self.dialect.sql(text))
            .bind(newest)
            .fetch_one(&self.reader)
            .await
            .map_err(unavailable)?;
        let (last, purged, gaps): (i64, Option<i64>, i64) = (row.get(0), row.get(1), row.get(2));
        let is_unknown = newest > last || newest < purged.unwrap_or_default() || gaps > 0;
        if newest != 0 && is_unknown {
            return Err(Error::FeedExpired);
        }
        Ok(last)
    }

    pub(crate) async fn expire(&self) -> Result<usize, Error> {
        let mut tx = self.begin().await?;
        let text = "SELECT collection, part, id FROM neap_documents
            WHERE expires_at <= {now} ORDER BY collection, part, id LIMIT $1 {for_update}";
        let rows = sqlx::query(self.dialect.sql(text))
            .bind(EXPIRY_BATCH)
            .fetch_all(&mut *tx)
            .await
            .map_err(unavailable)?;
        for row in &rows {
            let (collection, part, id): (String, String, String) =
                (row.get(0), row.get(1), row.get(2));
            let text = "DELETE FROM neap_documents
                WHERE collection = $1 AND part = $2 AND id = $3";
            sqlx::query(text)
                .bind(&collection)
                .bind(&part)
                .bind(&id)
                .execute(&mut *tx)
                .await
                .map_err(unavailable)?;
            self.forget_named(&mut tx, &collection, &part, &id).await?;
        }
        self.purge(&mut tx).await?;
        self.forget_audit(&mut tx).await?;
        tx.commit().await.map_err(unavailable)?;
        Ok(rows.len())
    }

    /// Forgets deletions that every reader has had the time to see.
    async fn purge(&self, tx: &mut sqlx::Transaction<'static, sqlx::Any>) -> Result<(), Error> {
        let text = "SELECT max(revision) FROM neap_changes
            WHERE deleted = 1 AND changed_at <= {now} - $1";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(TOMBSTONE_RETENTION)
            .fetch_one(&mut **tx)
            .await
            .map_err(unavailable)?;
        let Some(purged) = row.get::<Option<i64>, _>(0) else {
            return Ok(());
        };
        let text = "DELETE FROM neap_changes
            WHERE deleted = 1 AND changed_at <= {now} - $1 AND revision <= $2";
        sqlx::query(self.dialect.sql(text))
            .bind(TOMBSTONE_RETENTION)
            .bind(purged)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        let text = "UPDATE neap_meta SET value = $1 WHERE name = 'purged' AND value < $1";
        sqlx::query(text)
            .bind(purged)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        Ok(())
    }

    /// Removes the oldest rows of the audit if their time is over. Only as many are looked at, because no index
    /// has their times.
    async fn forget_audit(
        &self,
        tx: &mut sqlx::Transaction<'static, sqlx::Any>,
    ) -> Result<(), Error> {
        let text = "DELETE FROM neap_audit WHERE number IN (
            SELECT number FROM (SELECT number, at FROM neap_audit ORDER BY number LIMIT $1) oldest
            WHERE at <= {now} - $2)";
        sqlx::query(self.dialect.sql(text))
            .bind(EXPIRY_BATCH)
            .bind(AUDIT_RETENTION)
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        Ok(())
    }

    pub(crate) async fn now(&self) -> Result<i64, Error> {
        let row = sqlx::query(self.dialect.sql("SELECT {now}"))
            .fetch_one(&self.reader)
            .await
            .map_err(unavailable)?;
        Ok(row.get(0))
    }

    pub(crate) async fn outbox(
        &self,
        limit: usize,
    ) -> Result<Vec<(i64, String, serde_json::Value)>, Error> {
        let text = "SELECT number, topic, body FROM neap_outbox ORDER BY number LIMIT $1";
        let rows = sqlx::query(text)
            .bind(limit as i64)
            .fetch_all(&self.reader)
            .await
            .map_err(unavailable)?;
        let messages = rows.iter().map(|row| {
            let body = parse(&row.get::<String, _>(2))?;
            Ok((row.get(0), row.get(1), body))
        });
        messages.collect()
    }

    pub(crate) async fn delivered(&self, number: i64) -> Result<(), Error> {
        sqlx::query("DELETE FROM neap_outbox WHERE number = $1")
            .bind(number)
            .execute(&self.writer)
            .await
            .map_err(unavailable)?;
        Ok(())
    }

    pub(crate) async fn audit(&self, limit: usize) -> Result<Vec<AuditRow>, Error> {
        let text = "SELECT actor, action, target, detail FROM neap_audit
            ORDER BY number DESC LIMIT $1";
        let rows = sqlx::query(text)
            .bind(limit as i64)
            .fetch_all(&self.reader)
            .await
            .map_err(unavailable)?;
        let rows = rows.iter().rev().map(|row| AuditRow {
            actor: row.get(0),
            action: row.get(1),
            target: row.get(2),
            detail: row.get(3),
        });
        Ok(rows.collect())
    }
}

/// The document in the first five columns of `row`.
pub(super) fn document(collection: &'static str, row: &AnyRow) -> Result<Document, Error> {
    let partition = Partition::from_name(row.get(0));
    Ok(Document {
        key: DocumentKey::new(collection, &partition, row.get::<String, _>(1)),
        etag: Etag(row.get(2)),
        body: parse(&row.get::<String, _>(3))?,
        updated_at: row.get(4),
    })
}

fn parse(text: &str) -> Result<serde_json::Value, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::Invalid(format!("its stored text is damaged: {error}")))
}
