//! The durable engine under the store: a checksummed, segmented, append-only log with snapshots.
//!
//! All objects live in memory; the journal makes them survive a restart. It depends on nothing but
//! a [`Disk`], and has one writer at a time.
//!
//! Invariants:
//! - a batch is durable when [`Journal::append`] returns `Ok`, and after a power cut it is there
//!   as a whole or not at all;
//! - the revision never goes back, even when no object is left;
//! - data that was durable and is no longer readable is an [`Error`] that names the file, and is
//!   never dropped silently.
//!
//! One limit remains. The end of the last log after a *crash* cannot be told from a write that a
//! power cut interrupted. If the disk later damages the last batch, or erases everything from some
//! batch to the end, that is dropped, with a warning if any of it is left. Every frame confirms
//! those before it, and [`Journal::close`] writes one, so after an orderly stop damage to any one
//! batch is detected.
//!
//! ```text
//! FORMAT                          pocket data format 1
//! lock                            held while a process uses the folder
//! snapshot-<revision>.seg         all objects at that revision
//! log-<revision>.seg              the writes after that revision, in order
//! ```

mod chain;
mod disk;
mod error;
#[cfg(test)]
pub(crate) mod faulty;
mod folder;
mod format;
mod frame;
mod header;
mod layout;
mod log;
mod record;
mod recovery;
mod replay;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};

use bytes::Bytes;

pub use self::{
    disk::{Disk, DiskFile},
    error::Error,
    folder::FolderDisk,
    snapshot::{Compaction, Pieces, Snapshot},
};
use self::{folder::FolderView, frame::PAYLOAD_LIMIT, log::Log, record::record_len};

/// One write of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The unique revision of this write.
    pub revision: u64,
    /// The key, in the store's own form.
    pub key: Bytes,
    /// The new value; `None` deletes.
    pub value: Option<Bytes>,
}

/// A recent write, with the version it replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalChange {
    pub record: Record,
    /// The version before it, if the key existed.
    pub previous: Option<Record>,
}

/// The content of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// No revision up to this one may be assigned again.
    pub revision: u64,
    /// All objects, by key.
    pub live: Vec<Record>,
    /// Every write after `tail_after`, oldest first.
    pub tail: Vec<JournalChange>,
    /// A watch may resume from this revision or any later one.
    pub tail_after: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSettings {
    /// Recent writes that are recovered for watches, at most.
    pub tail_limit: usize,
    /// The logs may grow by this many bytes, or by the size of the snapshot if that is larger,
    /// before [`Journal::wants_compaction`].
    pub compact_above: u64,
    /// New logs grow by this many bytes at a time; zero counts as one.
    pub step: u32,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            tail_limit: 10_000,
            compact_above: 8 << 20,
            step: 1 << 20,
        }
    }
}

/// The open journal of one data folder.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    settings: JournalSettings,
    log: Log,
    /// The first write failure: after it, what the disk holds is unknown until it is read again.
    failed: Option<Error>,
    snapshot_bytes: u64,
    sealed_bytes: u64,
    /// Size of the logs above which [`Journal::wants_compaction`] is true.
    compact_at: u64,
    running: Weak<()>,
}

impl Journal {
    /// Opens a data folder, initializing an empty one, and reads its content.
    pub fn open(
        disk: Box<dyn Disk>,
        settings: JournalSettings,
    ) -> Result<(Self, Recovered), Error> {
        let disk: Arc<dyn Disk> = disk.into();
        let settings = JournalSettings {
            step: settings.step.max(1),
            ..settings
        };
        format::ensure(&disk, settings.step)?;
        let resumed = recovery::recover(&disk, &settings)?;
        let mut journal = Self {
            disk,
            settings,
            log: resumed.log,
            failed: None,
            snapshot_bytes: resumed.snapshot_bytes,
            sealed_bytes: resumed.sealed_bytes,
            compact_at: 0,
            running: Weak::new(),
        };
        journal.compact_at = journal.worthwhile();
        Ok((journal, resumed.recovered))
    }

    /// Reads a data folder as [`Journal::open`] does, and changes nothing: the error is the one that it would
    /// return. A folder that is missing or was never used is fine. No process may use the folder meanwhile.
    pub fn verify(folder: &std::path::Path) -> Result<(), Error> {
        if !folder.exists() {
            return Ok(());
        }
        let disk = FolderView::new(folder);
        if format::verify(&disk)? {
            recovery::verify(&disk)?;
        }
        Ok(())
    }

    /// Commits the records together: durable when it returns `Ok`, with one write and one sync.
    ///
    /// Revisions ascend, within the batch and from batch to batch; gaps are allowed. Once a write
    /// or a sync has failed, every later call repeats that error.
    pub fn append(&mut self, batch: &[Record]) -> Result<(), Error> {
        self.check_health()?;
        self.check(batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let result = self.log.append(batch);
        self.remember(result)
    }

    /// The revision of the last batch.
    pub fn revision(&self) -> u64 {
        self.log.last()
    }

    /// Whether enough of the logs is superseded for a snapshot to pay.
    pub fn wants_compaction(&self) -> bool {
        self.failed.is_none()
            && self.running.strong_count() == 0
            && self.log_bytes() > self.compact_at
    }

    /// Replaces snapshot and logs by a snapshot of the objects that exist at `revision`, which must
    /// be [`Journal::revision`] or a later one that is assigned already.
    ///
    /// Nothing is lost if it is interrupted. An error while the snapshot is written leaves the
    /// journal usable as it was.
    pub fn compact(
        &mut self,
        revision: u64,
        live: &mut dyn Iterator<Item = Record>,
    ) -> Result<(), Error> {
        let snapshot = self.begin_compaction(revision)?.write(live)?;
        self.finish_compaction(snapshot)
    }

    /// The first part of [`Journal::compact`]: later batches go to a new log, so the snapshot may
    /// be written elsewhere meanwhile. One compaction runs at a time; dropping it cancels it.
    pub fn begin_compaction(&mut self, revision: u64) -> Result<Compaction, Error> {
        self.check_health()?;
        if self.running.strong_count() > 0 {
            return Err(Error::Compacting);
        }
        if revision < self.log.last() {
            return Err(Error::NotInSnapshot {
                revision: self.log.last(),
                snapshot: revision,
            });
        }
        // A failed compaction is retried only after as much again was written.
        self.compact_at = self.log_bytes() + self.settings.compact_above;
        if revision != self.log.base() {
            self.rotate(revision)?;
        }
        let running = Arc::new(());
        self.running = Arc::downgrade(&running);
        Ok(Compaction {
            disk: self.disk.clone(),
            revision,
            running,
        })
    }

    /// The last part of [`Journal::compact`]: the snapshot replaces the logs before it.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a snapshot takes effect once, and ends its compaction"
    )]
    pub fn finish_compaction(&mut self, snapshot: Snapshot) -> Result<(), Error> {
        // While it is unknown what the newest log holds, nothing is removed.
        self.check_health()?;
        let disk = &*self.disk;
        let (from, to) = (
            layout::new_snapshot(snapshot.revision),
            layout::snapshot(snapshot.revision),
        );
        disk.rename(&from, &to)
            .map_err(Error::io(disk, "rename", &from))?;
        disk.sync_folder().map_err(Error::io(disk, "sync", ""))?;
        let layout = layout::Layout::of(disk)?;
        self.snapshot_bytes = snapshot.bytes;
        self.sealed_bytes = 0;
        self.compact_at = self.worthwhile();
        recovery::tidy(&*self.disk, layout.superseded())
    }

    /// Closes the journal in order, which confirms the last batch; see the module's one limit.
    pub fn close(mut self) -> Result<(), Error> {
        self.check_health()?;
        self.log.write_close()
    }

    /// The new log is durable before the old one is sealed with its name.
    ///
    /// Until then the old log is untouched, so that writes go on if the new one cannot be created,
    /// for example because no descriptor is left at that moment; the next compaction tries again.
    fn rotate(&mut self, base: u64) -> Result<(), Error> {
        let next = match Log::create(&self.disk, base, self.settings.step) {
            Ok(next) => next,
            Err(error) => {
                // A second attempt would have another name, and only the last log may be unused.
                let removed = Log::discard(&*self.disk, base);
                self.remember(removed)?;
                return Err(error);
            }
        };
        let sealed = self.log.seal(base);
        self.remember(sealed)?;
        self.sealed_bytes += self.log.bytes();
        self.log = next;
        Ok(())
    }

    fn check(&self, batch: &[Record]) -> Result<(), Error> {
        let (mut last, mut bytes) = (self.log.last(), 0);
        for record in batch {
            if record.revision <= last {
                let revision = record.revision;
                return Err(Error::Backwards { revision, last });
            }
            last = record.revision;
            bytes += record_len(record);
        }
        if bytes > PAYLOAD_LIMIT {
            let limit = PAYLOAD_LIMIT;
            return Err(Error::TooLarge { bytes, limit });
        }
        Ok(())
    }

    fn check_health(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn remember(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    fn log_bytes(&self) -> u64 {
        self.sealed_bytes + self.log.bytes()
    }

    fn worthwhile(&self) -> u64 {
        self.snapshot_bytes.max(self.settings.compact_above)
    }
}
