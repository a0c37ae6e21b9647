//! The store in memory, for tests and for servers that keep nothing.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    commit::{AuditRow, Commit, Precondition, QueueChange, Write},
    document::{
        Change, Changes, Claimed, Cursor, Document, DocumentKey, Etag, Lease, ListRequest,
        Partition, UniqueKey, WorkState,
    },
    error::Error,
};

/// How long a deletion stays in the change feed, in milliseconds.
pub(crate) const TOMBSTONE_RETENTION: i64 = 7 * 24 * 3_600_000;
/// How long a row of the audit is kept, in milliseconds: a year, and the time to look at it.
pub(crate) const AUDIT_RETENTION: i64 = 400 * 24 * 3_600_000;

/// Collection, partition and id of a document.
type RowKey = (&'static str, String, String);

/// The documents and everything beside them.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    documents: BTreeMap<RowKey, Row>,
    work: BTreeMap<RowKey, QueueRow>,
    changes: BTreeMap<i64, (RowKey, bool, i64)>,
    newest: HashMap<RowKey, i64>,
    unique: HashMap<(&'static str, String, &'static str, String), String>,
    outbox: Vec<(i64, &'static str, Value)>,
    /// When each row was written, and the row.
    audit: Vec<(i64, AuditRow)>,
    sequence: i64,
    purged: i64,
}

#[derive(Debug)]
struct Row {
    revision: i64,
    body: Value,
    updated_at: i64,
    expires_at: Option<i64>,
}

/// The state of a queued document, and its lease.
#[derive(Debug, Default)]
struct QueueRow {
    queue: Option<&'static str>,
    not_before: i64,
    queued_at: i64,
    owner: Option<String>,
    fence: i64,
    expires_at: i64,
    dequeues: i64,
}

fn row_key(key: &DocumentKey) -> RowKey {
    (
        key.collection,
        key.partition.name().to_owned(),
        key.id.clone(),
    )
}

fn key(at: &RowKey) -> DocumentKey {
    DocumentKey::new(at.0, &Partition::from_name(at.1.clone()), at.2.clone())
}

impl State {
    fn next(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    fn live(&self, at: &RowKey, now: i64) -> Option<&Row> {
        let row = self.documents.get(at)?;
        row.expires_at.is_none_or(|at| at > now).then_some(row)
    }

    fn document(&self, at: &RowKey, now: i64) -> Option<Document> {
        let row = self.live(at, now)?;
        Some(Document {
            key: key(at),
            etag: Etag(row.revision),
            body: row.body.clone(),
            updated_at: row.updated_at,
        })
    }

    fn record_change(&mut self, at: &RowKey, revision: i64, deleted: bool, now: i64) {
        if let Some(older) = self.newest.insert(at.clone(), revision) {
            self.changes.remove(&older);
        }
        self.changes.insert(revision, (at.clone(), deleted, now));
    }

    fn remove(&mut self, at: &RowKey, now: i64) {
        if self.documents.remove(at).is_some() {
            let revision = self.next();
            self.record_change(at, revision, true, now);
        }
        self.work.remove(at);
        self.release_unique(at);
    }

    fn release_unique(&mut self, at: &RowKey) {
        let (collection, partition, id) = at;
        self.unique
            .retain(|held, holder| (held.0, &held.1, &*holder) != (*collection, partition, id));
    }

    fn check(&self, key: &DocumentKey, precondition: &Precondition, now: i64) -> Result<(), Error> {
        let at = row_key(key);
        let live = self.live(&at, now);
        let etag = |etag: &Etag| match live {
            None => Err(Error::Missing(key.to_string())),
            Some(row) if row.revision == etag.0 => Ok(()),
            Some(_) => Err(Error::Conflict(key.to_string())),
        };
        match precondition {
            Precondition::Absent if live.is_some() => Err(Error::Exists(key.to_string())),
            Precondition::Absent => Ok(()),
            Precondition::Etag(expected) => etag(expected),
            Precondition::Lease(lease) => {
                self.check_lease(lease)?;
                live.map(|_| ())
                    .ok_or_else(|| Error::Missing(key.to_string()))
            }
            Precondition::EtagAndLease(expected, lease) => {
                self.check_lease(lease)?;
                etag(expected)
            }
        }
    }

    fn check_lease(&self, lease: &Lease) -> Result<(), Error> {
        let work = self.work.get(&row_key(&lease.key));
        match work {
            Some(work) if work.fence == lease.fence && work.owner.is_some() => Ok(()),
            _ => Err(Error::LeaseLost(lease.key.to_string())),
        }
    }

    /// Whether `write` can be applied.
    fn verify(&self, write: &Write, now: i64) -> Result<(), Error> {
        match write {
            Write::Fence { lease, .. } => self.check_lease(lease),
            Write::Check { key, etag } => self.check(key, &Precondition::Etag(*etag), now),
            Write::Delete { key, precondition } => self.check(key, precondition, now),
            Write::Put {
                key,
                precondition,
                unique,
                ..
            } => {
                self.check(key, precondition, now)?;
                unique
                    .iter()
                    .try_for_each(|it| self.check_unique(key, it, now))
            }
        }
    }

    fn check_unique(&self, key: &DocumentKey, unique: &UniqueKey, now: i64) -> Result<(), Error> {
        let UniqueKey { name, value } = unique;
        let partition = key.partition.name().to_owned();
        let held = (key.collection, partition.clone(), *name, value.clone());
        match self.unique.get(&held) {
            Some(holder) if *holder != key.id => {
                let at = (key.collection, partition, holder.clone());
                if self.live(&at, now).is_none() {
                    return Ok(());
                }
                Err(Error::Unique {
                    name: (*name).to_owned(),
                    holder: holder.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Applies a write that was verified.
    fn apply(&mut self, write: Write, now: i64) -> Option<Etag> {
        match write {
            Write::Fence { lease, progress } => {
                if let Some(work) = self.work.get_mut(&row_key(&lease.key))
                    && progress
                {
                    work.dequeues = 0;
                }
                None
            }
            Write::Check { .. } => None,
            Write::Delete { key, .. } => {
                self.remove(&row_key(&key), now);
                None
            }
            Write::Put {
                key,
                precondition,
                body,
                unique,
                ttl,
                queue,
            } => {
                let at = row_key(&key);
                if precondition == Precondition::Absent {
                    // One that has expired may still be there.
                    self.remove(&at, now);
                }
                self.claim_unique(&at, unique);
                let revision = self.next();
                let row = Row {
                    revision,
                    body,
                    updated_at: now,
                    expires_at: ttl.map(|ttl| now + ttl),
                };
                self.documents.insert(at.clone(), row);
                self.record_change(&at, revision, false, now);
                self.change_queue(&at, &queue, now);
                Some(Etag(revision))
            }
        }
    }

    fn claim_unique(&mut self, at: &RowKey, unique: Vec<UniqueKey>) {
        self.release_unique(at);
        for UniqueKey { name, value } in unique {
            let held = (at.0, at.1.clone(), name, value);
            self.unique.insert(held, at.2.clone());
        }
    }

    fn change_queue(&mut self, at: &RowKey, change: &QueueChange, now: i64) {
        match *change {
            QueueChange::Keep => {}
            QueueChange::Queue { name, delay, reset } => {
                let work = self.work.entry(at.clone()).or_default();
                work.queue = Some(name);
                work.not_before = now + delay;
                work.queued_at = now;
                work.owner = None;
                work.expires_at = 0;
                if reset {
                    work.dequeues = 0;
                }
            }
            QueueChange::Done => {
                self.work.remove(at);
            }
        }
    }
}

impl Memory {
    pub(crate) fn commit(&self, commit: Commit, now: i64) -> Result<Vec<Etag>, Error> {
        let mut state = self.0.lock();
        // All or nothing: nothing is written before everything is checked.
        for write in &commit.writes {
            state.verify(write, now)?;
        }
        let writes = commit.writes.into_iter();
        let etags = writes.filter_map(|write| state.apply(write, now)).collect();
        for (topic, body) in commit.outbox {
            let sequence = state.next();
            state.outbox.push((sequence, topic, body));
        }
        let rows = commit.audit.into_iter().map(|row| (now, row));
        state.audit.extend(rows);
        Ok(etags)
    }

    pub(crate) fn rehearse(&self, commit: &Commit, now: i64) -> Result<(), Error> {
        let state = self.0.lock();
        let mut writes = commit.writes.iter();
        writes.try_for_each(|write| state.verify(write, now))
    }

    pub(crate) fn get(&self, key: &DocumentKey, now: i64) -> Option<Document> {
        self.0.lock().document(&row_key(key), now)
    }

    pub(crate) fn list(&self, request: &ListRequest<'_>, now: i64) -> Vec<Document> {
        let state = self.0.lock();
        let places = state.documents.keys().filter(|(collection, part, id)| {
            *collection == request.collection
                && request.scope.name().is_none_or(|scope| scope == part)
                && id.starts_with(request.prefix)
                && request.after.is_none_or(|after| (&**part, &**id) > after)
        });
        places
            .filter_map(|at| state.document(at, now))
            .take(request.limit)
            .collect()
    }

    pub(crate) fn claim(
        &self,
        collection: &'static str,
        queue: &str,
        owner: &str,
        lease: i64,
        now: i64,
    ) -> Option<Claimed> {
        let mut state = self.0.lock();
        let mut busy: HashMap<&str, usize> = HashMap::new();
        for ((in_collection, part, _), work) in &state.work {
            if *in_collection == collection && work.owner.is_some() && work.expires_at > now {
                *busy.entry(part).or_default() += 1;
            }
        }
        let candidates = state.work.iter().filter(|((of, ..), work)| {
            *of == collection
                && work.queue == Some(queue)
                && work.not_before <= now
                && work.expires_at <= now
        });
        let (at, _) = candidates.min_by_key(|(at, work)| {
            (
                busy.get(&*at.1).copied().unwrap_or_default(),
                work.queued_at,
            )
        })?;
        let at = at.clone();
        let document = state.document(&at, now)?;
        let fence = state.next();
        let work = state.work.get_mut(&at)?;
        work.owner = Some(owner.to_owned());
        work.fence = fence;
        work.expires_at = now + lease;
        work.dequeues += 1;
        let lease = Lease {
            key: document.key.clone(),
            owner: owner.to_owned(),
            fence,
            dequeues: work.dequeues,
        };
        Some(Claimed { document, lease })
    }

    pub(crate) fn renew(&self, lease: &Lease, duration: i64, now: i64) -> Result<(), Error> {
        let mut state = self.0.lock();
        state.check_lease(lease)?;
        if let Some(work) = state.work.get_mut(&row_key(&lease.key)) {
            work.expires_at = now + duration;
        }
        Ok(())
    }

    pub(crate) fn release(&self, lease: &Lease, delay: i64, now: i64) -> Result<(), Error> {
        let mut state = self.0.lock();
        state.check_lease(lease)?;
        if let Some(work) = state.work.get_mut(&row_key(&lease.key)) {
            work.owner = None;
            work.expires_at = 0;
            work.not_before = now + delay;
        }
        Ok(())
    }

    pub(crate) fn work(&self, key: &DocumentKey, now: i64) -> WorkState {
        let state = self.0.lock();
        let Some(work) = state.work.get(&row_key(key)) else {
            return WorkState::default();
        };
        WorkState {
            queue: work.queue.map(str::to_owned),
            owner: work.owner.clone().filter(|_| work.expires_at > now),
            dequeues: work.dequeues,
        }
    }

    pub(crate) fn queue_length(&self, collection: &str, queue: &str) -> i64 {
        let state = self.0.lock();
        let waiting = state
            .work
            .iter()
            .filter(|((of, ..), work)| *of == collection && work.queue == Some(queue));
        waiting.count() as i64
    }

    pub(crate) fn next_claim(&self, collection: &str, queue: &str, now: i64) -> Option<i64> {
        let state = self.0.lock();
        let waiting = state
            .work
            .iter()
            .filter(|((of, ..), work)| *of == collection && work.queue == Some(queue));
        let due = waiting.map(|(_, work)| work.not_before.max(work.expires_at) - now);
        due.min()
    }

    pub(crate) fn changes(
        &self,
        collection: &'static str,
        after: Cursor,
        limit: usize,
        now: i64,
    ) -> Result<Changes, Error> {
        let state = self.0.lock();
        let unknown = after.newest() > state.sequence;
        let forgotten = after.newest() != 0 && after.newest() < state.purged;
        if unknown || forgotten {
            return Err(Error::FeedExpired);
        }
        let mut cursor = Cursor {
            seen: state.sequence,
            ..after
        };
        let mut changes = Vec::new();
        for (revision, (at, ..)) in state.changes.range(after.revision + 1..) {
            if at.0 != collection {
                continue;
            }
            if changes.len() == limit {
                break;
            }
            cursor.revision = *revision;
            let document = state.document(at, now);
            changes.push(Change {
                key: key(at),
                document,
            });
        }
        Ok(Changes { changes, cursor })
    }

    pub(crate) fn expire(&self, now: i64) -> usize {
        let mut state = self.0.lock();
        let expired = |row: &Row| row.expires_at.is_some_and(|at| at <= now);
        let places: Vec<_> = state
            .documents
            .iter()
            .filter(|(_, row)| expired(row))
            .map(|(at, _)| at.clone())
            .collect();
        for at in &places {
            state.remove(at, now);
        }
        let old: Vec<_> = state
            .changes
            .iter()
            .filter(|(_, (_, deleted, at))| *deleted && at + TOMBSTONE_RETENTION <= now)
            .map(|(revision, (at, ..))| (*revision, at.clone()))
            .collect();
        for (revision, at) in old {
            state.changes.remove(&revision);
            state.newest.remove(&at);
            state.purged = state.purged.max(revision);
        }
        let is_kept = |at: i64| at + AUDIT_RETENTION > now;
        state.audit.retain(|(at, _)| is_kept(*at));
        places.len()
    }

    pub(crate) fn outbox(&self, limit: usize) -> Vec<(i64, String, Value)> {
        let state = self.0.lock();
        let messages = state.outbox.iter().take(limit);
        messages
            .map(|(sequence, topic, body)| (*sequence, (*topic).to_owned(), body.clone()))
            .collect()
    }

    pub(crate) fn delivered(&self, sequence: i64) {
        self.0.lock().outbox.retain(|(it, ..)| *it != sequence);
    }

    pub(crate) fn audit(&self, limit: usize) -> Vec<AuditRow> {
        let state = self.0.lock();
        let skipped = state.audit.len().saturating_sub(limit);
        let rows = state.audit[skipped..].iter();
        rows.map(|(_, row)| row.clone()).collect()
    }
}
