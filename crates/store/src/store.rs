//! The handle of a store.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
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

/// The number of documents in which seals are looked at, of each collection.
const OLDER_SEALS: usize = 20;

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

/// A call to a store, as a [`CallObserver`] sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreCall {
    /// The method of [`Store`].
    pub name: &'static str,
    /// Whether it may change something.
    pub writes: bool,
}

impl StoreCall {
    const fn read(name: &'static str) -> Self {
        let writes = false;
        Self { name, writes }
    }

    const fn write(name: &'static str) -> Self {
        let writes = true;
        Self { name, writes }
    }
}

/// Stands before and after each call of one handle: tests fail, delay and stop calls with it.
pub trait CallObserver: Send + Sync {
    /// The call has not happened yet. An error is that of the call, which then does not happen.
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>>;

    /// The call has succeeded. An error is that of the call, although it has happened.
    fn after(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>>;
}

/// Documents with etags, leases and a change feed. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    options: Arc<StoreOptions>,
    work: Arc<watch::Sender<u64>>,
    observer: Option<Arc<dyn CallObserver>>,
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

    /// Checks the address of a database without connecting to it. Creates the file of SQLite, which only its
    /// owner may read; SQLite gives its other files the permissions of this one.
    pub fn prepare(address: &str) -> Result<(), Error> {
        Sql::prepare(address)
    }

    /// The database at `address`: `sqlite:FILE` or `postgres://…`. Creates or upgrades its tables. Refuses keys
    /// that are not those which the database was used with.
    pub async fn open(address: &str, options: StoreOptions) -> Result<Self, Error> {
        Self::prepare(address)?;
        let sql = Sql::open(address).await?;
        let is_known = sql.knows_keys().await?;
        let store = Self::with(Engine::Sql(Arc::new(sql)), options);
        if !is_known {
            store.check_older_seals().await?;
        }
        if let Engine::Sql(sql) = &store.engine {
            sql.register_keys(store.options.keys.fingerprints()).await?;
        }
        Ok(store)
    }

    /// Refuses keys that do not open what a database from before fingerprints has sealed: their fingerprints
    /// would be taken for the right ones.
    async fn check_older_seals(&self) -> Result<(), Error> {
        for fields in self.options.secure {
            let request = ListRequest {
                collection: fields.collection,
                scope: Scope::Everywhere,
                prefix: "",
                after: None,
                limit: OLDER_SEALS,
            };
            for document in self.list(&request).await? {
                self.options.keys.check(&document, fields.paths)?;
            }
        }
        Ok(())
    }

    fn with(engine: Engine, options: StoreOptions) -> Self {
        Self {
            engine,
            options: Arc::new(options),
            work: Arc::new(watch::Sender::new(0)),
            observer: None,
        }
    }

    /// The same store, whose calls `observer` sees if they are made through this handle.
    pub fn observed_by(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    async fn call<T>(
        &self,
        call: StoreCall,
        doing: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(observer) = &self.observer else {
            return doing.await;
        };
        observer.before(call).await?;
        let done = doing.await?;
        observer.after(call).await?;
        Ok(done)
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
        let doing = async {
            let etags = match &self.engine {
                Engine::Memory(memory, clock) => memory.commit(commit, clock())?,
                Engine::Sql(sql) => sql.commit(commit).await?,
            };
            if queues_work {
                self.work.send_modify(|count| *count += 1);
            }
            Ok(etags)
        };
        self.call(StoreCall::write("commit"), doing).await
    }

    /// Checks whether [`Store::commit`] would do these writes at this moment, and changes nothing. The error is
    /// that of the commit.
    pub async fn rehearse(&self, mut commit: Commit) -> Result<(), Error> {
        commit.prepare()?;
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => memory.rehearse(&commit, clock()),
                Engine::Sql(sql) => sql.rehearse(&commit).await,
            }
        };
        self.call(StoreCall::read("rehearse"), doing).await
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
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => Ok(memory.get(key, clock())),
                Engine::Sql(sql) => sql.get(key).await,
            }
        };
        self.call(StoreCall::read("get"), doing).await
    }

    /// Documents in the order of partition and id.
    pub async fn list(&self, request: &ListRequest<'_>) -> Result<Vec<Document>, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => Ok(memory.list(request, clock())),
                Engine::Sql(sql) => sql.list(request).await,
            }
        };
        self.call(StoreCall::read("list"), doing).await
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
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => {
                    Ok(memory.claim(collection, queue, owner, lease, clock()))
                }
                Engine::Sql(sql) => sql.claim(collection, queue, owner, lease).await,
            }
        };
        self.call(StoreCall::write("claim"), doing).await
    }

    /// Extends a lease to `duration` milliseconds from now.
    pub async fn renew(&self, lease: &Lease, duration: i64) -> Result<(), Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => memory.renew(lease, duration, clock()),
                Engine::Sql(sql) => sql.renew(lease, duration).await,
            }
        };
        self.call(StoreCall::write("renew"), doing).await
    }

    /// Ends a lease; the document stays in its queue and can be claimed after `delay` milliseconds.
    pub async fn release(&self, lease: &Lease, delay: i64) -> Result<(), Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => memory.release(lease, delay, clock())?,
                Engine::Sql(sql) => sql.release(lease, delay).await?,
            }
            self.work.send_modify(|count| *count += 1);
            Ok(())
        };
        self.call(StoreCall::write("release"), doing).await
    }

    /// How the work on a document stands.
    pub async fn work(&self, key: &DocumentKey) -> Result<WorkState, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => Ok(memory.work(key, clock())),
                Engine::Sql(sql) => sql.work(key).await,
            }
        };
        self.call(StoreCall::read("work"), doing).await
    }

    /// The number of documents in a queue, claimed ones included.
    pub async fn queue_length(&self, collection: &'static str, queue: &str) -> Result<i64, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, _) => Ok(memory.queue_length(collection, queue)),
                Engine::Sql(sql) => sql.queue_length(collection, queue).await,
            }
        };
        self.call(StoreCall::read("queue_length"), doing).await
    }

    /// The milliseconds until a document of a queue may be claimed, if there is one and nothing changes
    /// before: none or less than none if it may be claimed now.
    pub async fn next_claim(
        &self,
        collection: &'static str,
        queue: &str,
    ) -> Result<Option<i64>, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => Ok(memory.next_claim(collection, queue, clock())),
                Engine::Sql(sql) => sql.next_claim(collection, queue).await,
            }
        };
        self.call(StoreCall::read("next_claim"), doing).await
    }

    /// The newest change of each document that changed after a position.
    pub async fn changes(
        &self,
        collection: &'static str,
        after: Cursor,
        limit: usize,
    ) -> Result<Changes, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => memory.changes(collection, after, limit, clock()),
                Engine::Sql(sql) => sql.changes(collection, after, limit).await,
            }
        };
        self.call(StoreCall::read("changes"), doing).await
    }

    /// The time of the database, in milliseconds since 1970.
    pub async fn now(&self) -> Result<i64, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(_, clock) => Ok(clock()),
                Engine::Sql(sql) => sql.now().await,
            }
        };
        self.call(StoreCall::read("now"), doing).await
    }

    /// Removes documents that have expired, and rows of the audit that are older than 400 days. Returns the
    /// number of documents.
    pub async fn expire(&self) -> Result<usize, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, clock) => Ok(memory.expire(clock())),
                Engine::Sql(sql) => sql.expire().await,
            }
        };
        self.call(StoreCall::write("expire"), doing).await
    }

    /// The oldest messages of the outbox: number, topic, body.
    pub async fn outbox(&self, limit: usize) -> Result<Vec<(i64, String, Value)>, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, _) => Ok(memory.outbox(limit)),
                Engine::Sql(sql) => sql.outbox(limit).await,
            }
        };
        self.call(StoreCall::read("outbox"), doing).await
    }

    /// Removes a message that was delivered.
    pub async fn delivered(&self, sequence: i64) -> Result<(), Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, _) => memory.delivered(sequence),
                Engine::Sql(sql) => sql.delivered(sequence).await?,
            }
            Ok(())
        };
        self.call(StoreCall::write("delivered"), doing).await
    }

    /// The newest rows of the audit, oldest first.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditRow>, Error> {
        let doing = async {
            match &self.engine {
                Engine::Memory(memory, _) => Ok(memory.audit(limit)),
                Engine::Sql(sql) => sql.audit(limit).await,
            }
        };
        self.call(StoreCall::read("audit"), doing).await
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
