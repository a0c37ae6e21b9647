//! The handle of a store.

use std::{fmt, sync::Arc};

use serde_json::Value;
use tokio::sync::watch;

use crate::{
    commit::{AuditRow, Commit, Write},
    document::{
        Changes, Claimed, Cursor, Document, DocumentKey, Etag, Lease, ListRequest, Scope, WorkState,
    },
    error::Error,
    memory::Memory,
    seal::{KeyRing, SecureFields},
    sql::Sql,
};

/// The clock of a store in memory: milliseconds since 1970.
pub type MemoryClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What a store is opened with.
#[derive(Debug)]
pub struct StoreOptions {
    /// The keys of secure fields.
    pub keys: KeyRing,
    /// Which fields are secure.
    pub secure: &'static [SecureFields],
}

/// Documents with etags, leases and a change feed. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    options: Arc<StoreOptions>,
    work: Arc<watch::Sender<u64>>,
}

#[derive(Clone)]
enum Engine {
    Memory(Arc<Memory>, MemoryClock),
    Sql(Arc<Sql>),
}

impl Store {
    /// A store in memory.
    pub fn in_memory(options: StoreOptions, clock: MemoryClock) -> Self {
        Self::with(Engine::Memory(Arc::default(), clock), options)
    }

    /// The database at `address`: `sqlite:FILE` or `postgres://…`. Creates or upgrades its tables.
    pub async fn open(address: &str, options: StoreOptions) -> Result<Self, Error> {
        let sql = Sql::open(address).await?;
        Ok(Self::with(Engine::Sql(Arc::new(sql)), options))
    }

    fn with(engine: Engine, options: StoreOptions) -> Self {
        Self {
            engine,
            options: Arc::new(options),
            work: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Does all writes of `commit` or none. Returns the new etags of the documents that it puts, in the
    /// order of their keys.
    pub async fn commit(&self, mut commit: Commit) -> Result<Vec<Etag>, Error> {
        commit.prepare()?;
        for write in &mut commit.writes {
            if let Write::Put { key, body, .. } = write {
                let fields = self.secure_fields(key.collection);
                self.options.keys.seal(key, fields, body)?;
            }
        }
        let queues_work = commit.queues_work();
        let etags = match &self.engine {
            Engine::Memory(memory, clock) => memory.commit(commit, clock())?,
            Engine::Sql(sql) => sql.commit(commit).await?,
        };
        if queues_work {
            self.work.send_modify(|count| *count += 1);
        }
        Ok(etags)
    }

    /// The document of this key, if the caller may see it.
    pub async fn get(
        &self,
        scope: Scope<'_>,
        key: &DocumentKey,
    ) -> Result<Option<Document>, Error> {
        if scope
            .name()
            .is_some_and(|name| name != key.partition.name())
        {
            return Ok(None);
        }
        match &self.engine {
            Engine::Memory(memory, clock) => Ok(memory.get(key, clock())),
            Engine::Sql(sql) => sql.get(key).await,
        }
    }

    /// Documents in the order of partition and id.
    pub async fn list(&self, request: &ListRequest<'_>) -> Result<Vec<Document>, Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => Ok(memory.list(request, clock())),
            Engine::Sql(sql) => sql.list(request).await,
        }
    }

    /// The body of `document` with its secure fields opened. Call it where the plain text is used.
    pub fn reveal(&self, document: &Document) -> Result<Value, Error> {
        let mut body = document.body.clone();
        let fields = self.secure_fields(document.key.collection);
        self.options.keys.open(&document.key, fields, &mut body)?;
        Ok(body)
    }

    /// Claims the document that waits in `queue` and whose partition has the fewest claims; among
    /// those, the one that waits longest. The lease lasts `lease` milliseconds.
    pub async fn claim(
        &self,
        collection: &'static str,
        queue: &str,
        owner: &str,
        lease: i64,
    ) -> Result<Option<Claimed>, Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => {
                Ok(memory.claim(collection, queue, owner, lease, clock()))
            }
            Engine::Sql(sql) => sql.claim(collection, queue, owner, lease).await,
        }
    }

    /// Extends a lease to `duration` milliseconds from now.
    pub async fn renew(&self, lease: &Lease, duration: i64) -> Result<(), Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => memory.renew(lease, duration, clock()),
            Engine::Sql(sql) => sql.renew(lease, duration).await,
        }
    }

    /// Ends a lease; the document stays in its queue and can be claimed after `delay` milliseconds.
    pub async fn release(&self, lease: &Lease, delay: i64) -> Result<(), Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => memory.release(lease, delay, clock())?,
            Engine::Sql(sql) => sql.release(lease, delay).await?,
        }
        self.work.send_modify(|count| *count += 1);
        Ok(())
    }

    /// How the work on a document stands.
    pub async fn work(&self, key: &DocumentKey) -> Result<WorkState, Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => Ok(memory.work(key, clock())),
            Engine::Sql(sql) => sql.work(key).await,
        }
    }

    /// The number of documents in a queue, claimed ones included.
    pub async fn queue_length(&self, collection: &'static str, queue: &str) -> Result<i64, Error> {
        match &self.engine {
            Engine::Memory(memory, _) => Ok(memory.queue_length(collection, queue)),
            Engine::Sql(sql) => sql.queue_length(collection, queue).await,
        }
    }

    /// The newest change of each document that changed after a position.
    pub async fn changes(
        &self,
        collection: &'static str,
        after: Cursor,
        limit: usize,
    ) -> Result<Changes, Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => memory.changes(collection, after, limit, clock()),
            Engine::Sql(sql) => sql.changes(collection, after, limit).await,
        }
    }

    /// Removes what has expired. Returns the number of documents.
    pub async fn expire(&self) -> Result<usize, Error> {
        match &self.engine {
            Engine::Memory(memory, clock) => Ok(memory.expire(clock())),
            Engine::Sql(sql) => sql.expire().await,
        }
    }

    /// The oldest messages of the outbox: number, topic, body.
    pub async fn outbox(&self, limit: usize) -> Result<Vec<(i64, String, Value)>, Error> {
        match &self.engine {
            Engine::Memory(memory, _) => Ok(memory.outbox(limit)),
            Engine::Sql(sql) => sql.outbox(limit).await,
        }
    }

    /// Removes a message that was delivered.
    pub async fn delivered(&self, sequence: i64) -> Result<(), Error> {
        match &self.engine {
            Engine::Memory(memory, _) => memory.delivered(sequence),
            Engine::Sql(sql) => sql.delivered(sequence).await?,
        }
        Ok(())
    }

    /// The newest rows of the audit, oldest first.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditRow>, Error> {
        match &self.engine {
            Engine::Memory(memory, _) => Ok(memory.audit(limit)),
            Engine::Sql(sql) => sql.audit(limit).await,
        }
    }

    /// Sees each commit that queues work: of this handle, and with [`Store::listen`] of other processes.
    pub fn work_announced(&self) -> watch::Receiver<u64> {
        self.work.subscribe()
    }

    /// Passes on the announcements of other processes, until the connection is lost. A store without
    /// announcements returns never; workers poll beside it in any case.
    pub async fn listen(&self) -> Result<(), Error> {
        match &self.engine {
            Engine::Memory(..) => std::future::pending().await,
            Engine::Sql(sql) => {
                sql.listen(|| self.work.send_modify(|count| *count += 1))
                    .await
            }
        }
    }

    fn secure_fields(&self, collection: &str) -> &'static [&'static str] {
        let secure = self.options.secure.iter();
        let found = secure
            .copied()
            .find(|fields| fields.collection == collection);
        found.map_or(&[], |fields| fields.paths)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match &self.engine {
            Engine::Memory(..) => "memory",
            Engine::Sql(_) => "sql",
        };
        f.debug_struct("Store")
            .field("engine", &engine)
            .finish_non_exhaustive()
    }
}
