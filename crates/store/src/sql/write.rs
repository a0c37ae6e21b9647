//! Commits: all writes of one in one transaction.

use sqlx::{Any, Row, Transaction};

use super::{CHANNEL, Sql, dialect::Dialect, is_full, unavailable};
use crate::{
    commit::{Commit, Precondition, QueueChange, Write},
    document::{DocumentKey, Etag, Lease, UniqueKey},
    error::Error,
};

/// How often a transaction that the database ended, to resolve a deadlock, is tried again.
const DEADLOCK_RETRIES: u32 = 5;

type Tx = Transaction<'static, Any>;

impl Sql {
    pub(super) async fn begin(&self) -> Result<Tx, Error> {
        let begun = self.writer.begin_with(self.dialect.begin()).await;
        begun.map_err(unavailable)
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Vec<Etag>, Error> {
        let mut attempts = 0;
        loop {
            match self.try_commit(&commit).await {
                Err(Error::Unavailable(error)) if is_deadlock(&*error) => {
                    attempts += 1;
                    if attempts > DEADLOCK_RETRIES {
                        return Err(Error::Unavailable(error));
                    }
                }
                done => return done,
            }
        }
    }

    /// Makes the writes of a commit and takes them back.
    pub(crate) async fn rehearse(&self, commit: &Commit) -> Result<(), Error> {
        let mut tx = self.begin().await?;
        for write in &commit.writes {
            self.write(&mut tx, write).await?;
        }
        tx.rollback().await.map_err(unavailable)
    }

    async fn try_commit(&self, commit: &Commit) -> Result<Vec<Etag>, Error> {
        let mut tx = self.begin().await?;
        let mut etags = Vec::new();
        let mut last = None;
        for write in &commit.writes {
            if let Some(etag) = self.write(&mut tx, write).await? {
                etags.push(etag);
                last = Some((write.key(), etag));
            }
        }
        for (topic, body) in &commit.outbox {
            let text = "INSERT INTO neap_outbox (topic, body, at) VALUES ($1, $2, {now})";
            sqlx::query(self.dialect.sql(text))
                .bind(*topic)
                .bind(body.to_string())
                .execute(&mut *tx)
                .await
                .map_err(unavailable)?;
        }
        for row in &commit.audit {
            let text = "INSERT INTO neap_audit (actor, action, target, detail, at)
                VALUES ($1, $2, $3, $4, {now})";
            sqlx::query(self.dialect.sql(text))
                .bind(&row.actor)
                .bind(&row.action)
                .bind(&row.target)
                .bind(&row.detail)
                .execute(&mut *tx)
                .await
                .map_err(unavailable)?;
        }
        if commit.queues_work() && self.dialect == Dialect::Postgres {
            sqlx::query("SELECT pg_notify($1, '')")
                .bind(CHANNEL)
                .fetch_optional(&mut *tx)
                .await
                .map_err(unavailable)?;
        }
        match self.end(tx).await {
            Ok(()) => Ok(etags),
            Err(error) if is_full(&error) => Err(Error::Full(error.into())),
            // The answer was lost, not necessarily the commit.
            Err(error) => match last {
                Some((key, etag)) if self.was_committed(key, etag).await => Ok(etags),
                _ => Err(Error::OutcomeUnknown(error.into())),
            },
        }
    }

    async fn end(&self, tx: Tx) -> Result<(), sqlx::Error> {
        tx.commit().await?;
        #[cfg(test)]
        if self
            .lose_commit_answers
            .swap(false, std::sync::atomic::Ordering::Relaxed)
        {
            return Err(sqlx::Error::WorkerCrashed);
        }
        Ok(())
    }

    /// Whether the database has this version of a document.
    async fn was_committed(&self, key: &DocumentKey, etag: Etag) -> bool {
        matches!(self.get(key).await, Ok(Some(found)) if found.etag == etag)
    }

    async fn write(&self, tx: &mut Tx, write: &Write) -> Result<Option<Etag>, Error> {
        match write {
            Write::Fence { lease, progress } => {
                self.check_lease(tx, lease, *progress).await?;
                Ok(None)
            }
            Write::Check { key, etag } => {
                self.check(tx, key, *etag).await?;
                Ok(None)
            }
            Write::Delete { key, precondition } => {
                self.delete(tx, key, precondition).await?;
                Ok(None)
            }
            Write::Put {
                key,
                precondition,
                body,
                unique,
                ttl,
                queue,
            } => {
                let body = body.to_string();
                let etag = match precondition {
                    Precondition::Absent => self.insert(tx, key, &body, *ttl).await?,
                    Precondition::Etag(etag) => {
                        self.update(tx, key, Some(*etag), &body, *ttl).await?
                    }
                    Precondition::Lease(lease) => {
                        self.check_lease(tx, lease, false).await?;
                        self.update(tx, key, None, &body, *ttl).await?
                    }
                    Precondition::EtagAndLease(etag, lease) => {
                        self.check_lease(tx, lease, false).await?;
                        self.update(tx, key, Some(*etag), &body, *ttl).await?
                    }
                };
                let is_new = *precondition == Precondition::Absent;
                self.claim_unique(tx, key, unique, is_new).await?;
                self.record_change(tx, key, Some(etag)).await?;
                self.change_queue(tx, key, queue).await?;
                Ok(Some(etag))
            }
        }
    }

    /// Checks the version of a document, and locks it until the transaction ends. Other commits may check it, too.
    async fn check(&self, tx: &mut Tx, key: &DocumentKey, etag: Etag) -> Result<(), Error> {
        let text = "SELECT revision FROM neap_documents
            WHERE collection = $1 AND part = $2 AND id = $3
              AND (expires_at IS NULL OR expires_at > {now}) {for_share}";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .fetch_optional(&mut **tx)
            .await
            .map_err(unavailable)?;
        match row.map(|row| row.get::<i64, _>(0)) {
            None => Err(Error::Missing(key.to_string())),
            Some(revision) if revision == etag.0 => Ok(()),
            Some(_) => Err(Error::Conflict(key.to_string())),
        }
    }

    /// SQLite has no sequences: its revision is a row, advanced by the one writer.
    pub(super) async fn advance_revision(&self, tx: &mut Tx) -> Result<(), Error> {
        if self.dialect == Dialect::Sqlite {
            sqlx::query("UPDATE neap_meta SET value = value + 1 WHERE name = 'revision'")
                .execute(&mut **tx)
                .await
                .map_err(unavailable)?;
        }
        Ok(())
    }

    async fn insert(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        body: &str,
        ttl: Option<i64>,
    ) -> Result<Etag, Error> {
        self.advance_revision(tx).await?;
        // One that has expired may still be there, and is replaced.
        let text = "INSERT INTO neap_documents AS d
            (collection, part, id, revision, body, updated_at, expires_at)
            VALUES ($1, $2, $3, {revision}, $4, {now}, {now} + CAST($5 AS BIGINT))
            ON CONFLICT (collection, part, id) DO UPDATE SET
                revision = excluded.revision, body = excluded.body,
                updated_at = excluded.updated_at, expires_at = excluded.expires_at
                WHERE d.expires_at <= {now}
            RETURNING revision";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .bind(body)
            .bind(ttl)
            .fetch_optional(&mut **tx)
            .await
            .map_err(unavailable)?;
        row.map(|row| Etag(row.get(0)))
            .ok_or_else(|| Error::Exists(key.to_string()))
    }

    async fn update(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        etag: Option<Etag>,
        body: &str,
        ttl: Option<i64>,
    ) -> Result<Etag, Error> {
        self.advance_revision(tx).await?;
        let text = "UPDATE neap_documents SET revision = {revision}, body = $4,
            updated_at = {now}, expires_at = {now} + CAST($5 AS BIGINT)
            WHERE collection = $1 AND part = $2 AND id = $3
              AND (expires_at IS NULL OR expires_at > {now})
              AND (CAST($6 AS BIGINT) < 0 OR revision = CAST($6 AS BIGINT))
            RETURNING revision";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .bind(body)
            .bind(ttl)
            .bind(etag.map_or(-1, |etag| etag.0))
            .fetch_optional(&mut **tx)
            .await
            .map_err(unavailable)?;
        match row {
            Some(row) => Ok(Etag(row.get(0))),
            None => Err(self.missing_or_changed(tx, key).await?),
        }
    }

    async fn missing_or_changed(&self, tx: &mut Tx, key: &DocumentKey) -> Result<Error, Error> {
        let text = "SELECT revision FROM neap_documents
            WHERE collection = $1 AND part = $2 AND id = $3
              AND (expires_at IS NULL OR expires_at > {now})";
        let row = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .fetch_optional(&mut **tx)
            .await
            .map_err(unavailable)?;
        Ok(match row {
            Some(_) => Error::Conflict(key.to_string()),
            None => Error::Missing(key.to_string()),
        })
    }

    async fn delete(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        precondition: &Precondition,
    ) -> Result<(), Error> {
        let etag = match precondition {
            Precondition::Etag(etag) => Some(*etag),
            Precondition::Lease(lease) => {
                self.check_lease(tx, lease, false).await?;
                None
            }
            Precondition::EtagAndLease(etag, lease) => {
                self.check_lease(tx, lease, false).await?;
                Some(*etag)
            }
            Precondition::Absent => return Err(Error::Exists(key.to_string())),
        };
        let text = "DELETE FROM neap_documents
            WHERE collection = $1 AND part = $2 AND id = $3
              AND (CAST($4 AS BIGINT) < 0 OR revision = CAST($4 AS BIGINT))";
        let deleted = sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .bind(etag.map_or(-1, |etag| etag.0))
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        if deleted.rows_affected() == 0 {
            return Err(self.missing_or_changed(tx, key).await?);
        }
        self.forget(tx, key).await
    }

    /// Removes everything beside a document that is deleted, and records the deletion.
    pub(super) async fn forget(&self, tx: &mut Tx, key: &DocumentKey) -> Result<(), Error> {
        for table in ["neap_unique", "neap_work"] {
            let text =
                format!("DELETE FROM {table} WHERE collection = $1 AND part = $2 AND id = $3");
            sqlx::query(self.dialect.sql(&text))
                .bind(key.collection)
                .bind(key.partition.name())
                .bind(&key.id)
                .execute(&mut **tx)
                .await
                .map_err(unavailable)?;
        }
        self.advance_revision(tx).await?;
        self.record_change(tx, key, None).await
    }

    async fn claim_unique(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        unique: &[UniqueKey],
        is_new: bool,
    ) -> Result<(), Error> {
        if !is_new {
            let text = "DELETE FROM neap_unique WHERE collection = $1 AND part = $2 AND id = $3";
            sqlx::query(text)
                .bind(key.collection)
                .bind(key.partition.name())
                .bind(&key.id)
                .execute(&mut **tx)
                .await
                .map_err(unavailable)?;
        }
        for UniqueKey { name, value } in unique {
            // A conflict changes nothing but returns the id of the holder.
            let text = "INSERT INTO neap_unique (collection, part, name, value, id)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (collection, part, name, value) DO UPDATE SET name = excluded.name
                RETURNING id";
            let row = sqlx::query(text)
                .bind(key.collection)
                .bind(key.partition.name())
                .bind(*name)
                .bind(value)
                .bind(&key.id)
                .fetch_one(&mut **tx)
                .await
                .map_err(unavailable)?;
            let holder: String = row.get(0);
            if holder != key.id {
                return Err(Error::Unique {
                    name: (*name).to_owned(),
                    holder,
                });
            }
        }
        Ok(())
    }

    /// Records that a document has a new version, or none.
    async fn record_change(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        etag: Option<Etag>,
    ) -> Result<(), Error> {
        let text = "INSERT INTO neap_changes
            (collection, part, id, txn, revision, deleted, changed_at)
            VALUES ($1, $2, $3, {transaction},
                CASE WHEN CAST($4 AS BIGINT) < 0 THEN {revision} ELSE CAST($4 AS BIGINT) END,
                CASE WHEN CAST($4 AS BIGINT) < 0 THEN 1 ELSE 0 END, {now})
            ON CONFLICT (collection, part, id) DO UPDATE SET
                txn = excluded.txn, revision = excluded.revision,
                deleted = excluded.deleted, changed_at = excluded.changed_at";
        sqlx::query(self.dialect.sql(text))
            .bind(key.collection)
            .bind(key.partition.name())
            .bind(&key.id)
            .bind(etag.map_or(-1, |etag| etag.0))
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        Ok(())
    }

    async fn change_queue(
        &self,
        tx: &mut Tx,
        key: &DocumentKey,
        change: &QueueChange,
    ) -> Result<(), Error> {
        match change {
            QueueChange::Keep => {}
            QueueChange::Done => {
                let text = "DELETE FROM neap_work
                    WHERE collection = $1 AND part = $2 AND id = $3";
                sqlx::query(text)
                    .bind(key.collection)
                    .bind(key.partition.name())
                    .bind(&key.id)
                    .execute(&mut **tx)
                    .await
                    .map_err(unavailable)?;
            }
            QueueChange::Queue { name, delay, reset } => {
                let text = "INSERT INTO neap_work AS w (collection, part, id, queue, not_before,
                        queued_at, owner, fence, expires_at, dequeues)
                    VALUES ($1, $2, $3, $4, {now} + $5, {now}, NULL, 0, 0, 0)
                    ON CONFLICT (collection, part, id) DO UPDATE SET
                        queue = excluded.queue, not_before = excluded.not_before,
                        queued_at = excluded.queued_at, owner = NULL, expires_at = 0,
                        dequeues = CASE WHEN CAST($6 AS BIGINT) = 1 THEN 0 ELSE w.dequeues END";
                sqlx::query(self.dialect.sql(text))
                    .bind(key.collection)
                    .bind(key.partition.name())
                    .bind(&key.id)
                    .bind(*name)
                    .bind(*delay)
                    .bind(i64::from(*reset))
                    .execute(&mut **tx)
                    .await
                    .map_err(unavailable)?;
            }
        }
        Ok(())
    }

    /// Checks that a lease holds, and locks it until the transaction ends, so that no other worker
    /// claims the document before.
    pub(super) async fn check_lease(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        progress: bool,
    ) -> Result<(), Error> {
        let text = "UPDATE neap_work
            SET dequeues = CASE WHEN CAST($5 AS BIGINT) = 1 THEN 0 ELSE dequeues END
            WHERE collection = $1 AND part = $2 AND id = $3 AND fence = $4 AND owner IS NOT NULL";
        let held = sqlx::query(text)
            .bind(lease.key.collection)
            .bind(lease.key.partition.name())
            .bind(&lease.key.id)
            .bind(lease.fence)
            .bind(i64::from(progress))
            .execute(&mut **tx)
            .await
            .map_err(unavailable)?;
        if held.rows_affected() == 0 {
            return Err(Error::LeaseLost(lease.key.to_string()));
        }
        Ok(())
    }
}

/// Whether the database ended the transaction so that another one can go on.
fn is_deadlock(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let code = error
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("40001" | "40P01"))
}
