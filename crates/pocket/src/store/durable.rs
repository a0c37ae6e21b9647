//! Group commit: the one thread that makes sequenced writes durable and then visible.
//!
//! While a sync is under way, further writes are sequenced and wait together for the next one, so
//! the cost of a sync is shared by everybody who waited for it.

use std::{mem, sync::Arc, thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{
    Error, Event, Object, Retention, Shared, Store, Waiter,
    journal::{self, Disk, Journal, Record},
    state::State,
};

/// A sequenced write and who waits for it.
type Queued = (Arc<Event>, oneshot::Sender<Result<(), Error>>);

/// Writes that have their revision and wait for the disk.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Vec<Queued>,
    closed: bool,
}

/// Separates resource from path in a journal key; neither can contain it.
const SEPARATOR: u8 = 0;

impl Store {
    /// Opens the store on `disk`, starting its writer thread.
    pub fn durable(disk: Box<dyn Disk>, retention: Retention) -> Result<Self, journal::Error> {
        let (journal, recovered) = Journal::open(disk)?;
        let objects = recovered.live.into_iter().filter_map(|record| {
            let (resource, path) = split(&record.key)?;
            Some((resource, path, Object::new(record.revision, record.value?)))
        });
        let state = State::restore(recovered.revision, objects);
        let store = Self::with(state, retention, true);
        let shared = Arc::clone(&store.shared);
        let writer = thread::Builder::new().name("pocket-writer".into());
        writer
            .spawn(move || shared.run(journal))
            .map_err(journal::Error::thread)?;
        Ok(store)
    }

    /// Lets the writer thread finish what was queued and end. Later writes are refused.
    pub fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.queued.notify_all();
    }
}

impl Shared {
    /// Queues a sequenced write; called under the state's lock, so the queue is in revision order.
    pub(super) fn enqueue(&self, event: Arc<Event>) -> Waiter {
        let (done, wait) = oneshot::channel();
        self.queue.lock().waiting.push((event, done));
        self.queued.notify_one();
        wait
    }

    fn run(&self, mut journal: Journal) {
        while let Some(batch) = self.next_batch() {
            let records: Vec<Record> = batch.iter().map(|(event, _)| record(event)).collect();
            match journal.append(&records) {
                Ok(()) => self.publish(batch),
                Err(error) => self.break_down(batch, &error),
            }
            if journal.wants_compaction() {
                self.compact(&mut journal);
            }
        }
        self.give_up(Vec::new(), "the server is stopping");
    }

    fn next_batch(&self) -> Option<Vec<Queued>> {
        let mut queue = self.queue.lock();
        while queue.waiting.is_empty() {
            if queue.closed {
                return None;
            }
            self.queued.wait(&mut queue);
        }
        Some(mem::take(&mut queue.waiting))
    }

    fn publish(&self, batch: Vec<Queued>) {
        let mut answers = Vec::with_capacity(batch.len());
        let mut state = self.state.write();
        for (event, done) in batch {
            state.commit(event, self.retention);
            answers.push(done);
        }
        self.committed.send_replace(state.committed);
        drop(state);
        for done in answers {
            // Whoever asked may have gone away; the write stands all the same.
            let _ = done.send(Ok(()));
        }
    }

    /// After a failed append nothing is known of what reached the disk, so nothing more is written.
    fn break_down(&self, batch: Vec<Queued>, error: &journal::Error) {
        tracing::error!(%error, "the data folder can no longer be written");
        self.give_up(batch, &error.to_string());
    }

    /// Refuses `batch`, everything queued behind it, and all later writes.
    fn give_up(&self, batch: Vec<Queued>, cause: &str) {
        let cause: Arc<str> = cause.into();
        let mut state = self.state.write();
        state.abandon(&cause);
        let behind = mem::take(&mut self.queue.lock().waiting);
        drop(state);
        self.committed.send_modify(|_| {});
        for (_, done) in batch.into_iter().chain(behind) {
            let _ = done.send(Err(Error::Broken(cause.clone())));
        }
    }

    fn compact(&self, journal: &mut Journal) {
        let (revision, live) = {
            let state = self.state.read();
            (state.committed, state.live())
        };
        let mut records = live.into_iter().map(|(resource, path, object)| Record {
            revision: object.revision(),
            key: key(&resource, &path),
            value: Some(object.json().clone()),
        });
        if let Err(error) = journal.compact(revision, &mut records) {
            self.break_down(Vec::new(), &error);
        }
    }
}

fn record(event: &Event) -> Record {
    Record {
        revision: event.revision(),
        key: key(&event.resource, &event.path),
        value: event.present().map(|object| object.json().clone()),
    }
}

fn key(resource: &str, path: &str) -> Bytes {
    let mut key = Vec::with_capacity(resource.len() + path.len() + 1);
    key.extend_from_slice(resource.as_bytes());
    key.push(SEPARATOR);
    key.extend_from_slice(path.as_bytes());
    key.into()
}

fn split(key: &[u8]) -> Option<(Arc<str>, Arc<str>)> {
    let at = key.iter().position(|&byte| byte == SEPARATOR)?;
    let resource = str::from_utf8(&key[..at]).ok()?;
    let path = str::from_utf8(&key[at + 1..]).ok()?;
    Some((resource.into(), path.into()))
}
