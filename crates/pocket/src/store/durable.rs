//! Group commit: sequenced writes become durable together and then visible.
//!
//! While a sync is under way, further writes are sequenced and wait together for the next one, so
//! they share the cost of a sync. Under concurrent writes a thread does this; a lone write is
//! committed without the thread, see [`Shared::commit_here`]. The thread also compacts the journal,
//! a slice between two batches, so that no write waits for a whole snapshot.
//!
//! Invariants:
//! - only the holder of the [`JournalWriter`] takes from the queue, so batches reach the journal in
//!   revision order;
//! - after releasing it, the holder checks the queue again, so that no write is left waiting there.

mod compaction;
mod writer;

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
};

use super::{
    Change, Error, Event, Object, Retention, STOPPING, Shared, Store, Waiter,
    journal::{self, Disk, Journal, Record, Recovered},
    state::{State, WatcherWake},
};
use compaction::Compacting;
pub(super) use writer::JournalWriter;

/// A sequenced write and the sender that notifies its waiter.
type Queued = (Arc<Event>, oneshot::Sender<Result<(), Error>>);

/// Sequenced writes that wait for the disk.
#[derive(Default)]
pub(super) struct WriteQueue {
    waiting: Vec<Queued>,
    /// The journal should be compacted, which the thread does.
    compaction_due: bool,
    closed: bool,
    thread: Option<thread::JoinHandle<()>>,
}

/// Bytes of a batch, at most, since it is held in memory once more as it is written.
const MAX_BATCH_BYTES: usize = 64 << 20;
const WRITER_PANICKED: &str = "the writer thread panicked";
/// Separates resource from path in a journal key; neither can contain it.
const SEPARATOR: u8 = 0;

impl WriteQueue {
    fn wants_thread(&self) -> bool {
        self.compaction_due || !self.waiting.is_empty()
    }

    /// Everything that waits, up to the bound.
    fn take(&mut self) -> Vec<Queued> {
        let mut bytes = 0;
        let most = self.waiting.iter().position(|(event, _)| {
            bytes += event.object.json().len();
            bytes > MAX_BATCH_BYTES
        });
        // The first write is taken however large it is.
        let behind = match most {
            Some(most) => self.waiting.split_off(most.max(1)),
            None => Vec::new(),
        };
        mem::replace(&mut self.waiting, behind)
    }
}

impl Store {
    /// Opens the store on `disk`, starting its writer thread.
    pub fn durable(
        disk: Box<dyn Disk>,
        retention: Retention,
        now: Timestamp,
    ) -> Result<Self, journal::Error> {
        Self::durable_with(disk, journal::JournalSettings::default(), retention, now)
    }

    pub(super) fn durable_with(
        disk: Box<dyn Disk>,
        settings: journal::JournalSettings,
        retention: Retention,
        now: Timestamp,
    ) -> Result<Self, journal::Error> {
        let (journal, recovered) = Journal::open(disk, settings)?;
        let store = Self::with(restore(recovered, now), retention, true);
        *store.shared.writer.lock() = Some(JournalWriter::new(journal));
        let shared = Arc::clone(&store.shared);
        let writer = thread::Builder::new().name("pocket-writer".into());
        let thread = writer
            .spawn(move || shared.run())
            .map_err(journal::Error::thread)?;
        store.shared.queue.lock().thread = Some(thread);
        Ok(store)
    }

    /// Makes queued writes durable, ends the writer thread and releases the folder. Later writes
    /// are refused, in memory too.
    pub fn close(&self) {
        if !self.shared.durable {
            self.shared.give_up(Vec::new(), STOPPING);
            return;
        }
        let thread = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            queue.thread.take()
        };
        self.shared.queued.notify_all();
        if let Some(thread) = thread {
            // A panic of the writer was reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Queues a sequenced write; called under the state's lock, so the queue is in revision order.
    /// Once that lock is released, [`Self::commit_here`] handles the queue.
    pub(super) fn enqueue(&self, event: Arc<Event>) -> Waiter {
        let (done, wait) = oneshot::channel();
        self.queue.lock().waiting.push((event, done));
        wait
    }

    /// Commits the queue on this thread if no other holder is at it, the disk is fast, there are no
    /// other writes to share the sync with, and requests have other threads; otherwise wakes the
    /// writer thread.
    ///
    /// Waking the thread and being woken by it would take a lone writer half as long again as the
    /// sync itself. Returns how many watchers were woken here.
    pub(super) fn commit_here(&self) -> usize {
        // The present holder checks the queue once more afterwards.
        let Some(mut held) = self.writer.try_lock() else {
            return 0;
        };
        let suits = |writer: &&mut JournalWriter| writer.suits_a_lone_write() && others_go_on();
        let mut woken = 0;
        if let Some(writer) = held.as_mut().filter(suits) {
            match catch_unwind(AssertUnwindSafe(|| self.commit_waiting(writer))) {
                Ok(watchers) => woken = watchers,
                Err(_) => self.give_up(Vec::new(), WRITER_PANICKED),
            }
        }
        drop(held);
        if self.queue.lock().wants_thread() {
            self.queued.notify_one();
        }
        woken
    }

    fn run(&self) {
        let _end = ReleaseWaiters(self);
        while self.wait_for_work() {
            if let Some(writer) = self.writer.lock().as_mut() {
                self.commit_waiting(writer);
                let under_way = writer.compacting.take();
                writer.compacting = self.compact(&mut writer.journal, under_way);
                self.queue.lock().compaction_due = writer.compacting.is_some();
            }
        }
        let Some(writer) = self.writer.lock().take() else {
            return;
        };
        if let Err(error) = writer.close() {
            tracing::error!(error = %chain(&error), "the data folder could not be closed cleanly");
        }
    }

    /// Waits for work; false at the end.
    fn wait_for_work(&self) -> bool {
        let mut queue = self.queue.lock();
        while !queue.wants_thread() {
            if queue.closed {
                return false;
            }
            self.queued.wait(&mut queue);
        }
        !(queue.closed && queue.waiting.is_empty())
    }

    /// Commits the queue, and returns how many watchers were woken.
    fn commit_waiting(&self, writer: &mut JournalWriter) -> usize {
        let batch = self.queue.lock().take();
        if batch.is_empty() {
            return 0;
        }
        let woken = self.commit(writer, batch);
        self.queue.lock().compaction_due = writer.journal.wants_compaction();
        woken
    }

    fn commit(&self, writer: &mut JournalWriter, batch: Vec<Queued>) -> usize {
        let records: Vec<Record> = batch.iter().map(|(event, _)| record(event)).collect();
        match writer.append(&records) {
            Ok(()) => self.publish(batch),
            Err(error) => {
                self.break_down(batch, &error);
                0
            }
        }
    }

    /// One step of the running compaction, or the first of one that is due.
    ///
    /// A failed compaction has changed nothing, and is retried when the logs have grown further.
    fn compact(&self, journal: &mut Journal, under_way: Option<Compacting>) -> Option<Compacting> {
        let stepped = match under_way {
            Some(compacting) => compacting.step(journal),
            None if journal.wants_compaction() => {
                let (revision, live) = {
                    let state = self.state.read();
                    (state.committed, state.live())
                };
                Compacting::begin(journal, revision, live).map(Some)
            }
            None => return None,
        };
        stepped.unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "the data folder could not be compacted");
            None
        })
    }

    fn publish(&self, batch: Vec<Queued>) -> usize {
        let mut answers = Vec::with_capacity(batch.len());
        let mut wakes: Vec<WatcherWake> = Vec::new();
        let mut state = self.state.write();
        for (event, done) in batch {
            let wake = state.commit(event, self.retention);
            match wakes.iter_mut().find(|other| other.is_like(&wake)) {
                Some(older) => *older = wake,
                None => wakes.push(wake),
            }
            answers.push(done);
        }
        self.committed.send_replace(state.committed);
        drop(state);
        let woken = wakes.iter().map(WatcherWake::watchers).sum();
        wakes.into_iter().for_each(WatcherWake::wake);
        for done in answers {
            // The request may have been cancelled; the write stands all the same.
            let _ = done.send(Ok(()));
        }
        woken
    }

    /// After a failed append it is unknown what reached the disk, so nothing more is written.
    fn break_down(&self, batch: Vec<Queued>, error: &journal::Error) {
        let cause = chain(error);
        tracing::error!(error = %cause, "the data folder can no longer be written");
        self.give_up(batch, &cause);
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
}

/// However the writer ends, its waiters are released.
struct ReleaseWaiters<'a>(&'a Shared);

impl Drop for ReleaseWaiters<'_> {
    fn drop(&mut self) {
        let cause = if thread::panicking() {
            WRITER_PANICKED
        } else {
            STOPPING
        };
        self.0.give_up(Vec::new(), cause);
    }
}

/// Whether other tasks run while this thread waits for the disk: not on a single-threaded runtime.
fn others_go_on() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// The error with its causes, since the text is passed on without the error.
fn chain(error: &journal::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// The state that a folder holds. Restored changes count as having happened now.
fn restore(recovered: Recovered, now: Timestamp) -> State {
    let objects = recovered.live.into_iter().filter_map(|record| {
        let (resource, path) = split(&record.key)?;
        Some((resource, path, Object::new(record.revision, record.value?)))
    });
    let mut state = State::restore(recovered.revision, recovered.tail_after, objects);
    for change in recovered.tail {
        if let Some(event) = past_event(change, now) {
            state.remember(Arc::new(event));
        }
    }
    state
}

fn past_event(change: journal::JournalChange, at: Timestamp) -> Option<Event> {
    let (resource, path) = split(&change.record.key)?;
    let revision = change.record.revision;
    let previous = change
        .previous
        .and_then(|record| Some(Object::new(record.revision, record.value?)));
    let (kind, json) = match (change.record.value, &previous) {
        (Some(json), None) => (Change::Added, json),
        (Some(json), Some(_)) => (Change::Modified, json),
        (None, Some(previous)) => (Change::Deleted, previous.at_revision(revision)),
        (None, None) => return None,
    };
    Some(Event {
        change: kind,
        resource,
        path,
        object: Arc::new(Object::new(revision, json)),
        previous: previous.map(Arc::new),
        at,
    })
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
