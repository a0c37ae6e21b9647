//! Recovers a data folder: the newest snapshot, then the chain of logs after it.
//!
//! The one harmless flaw is a torn tail: the last frame of the last log, whose sync had not
//! returned, so its write was never confirmed to a client. Everything else is an error that names
//! the file, and nothing in the folder is changed before the whole chain has been validated.

use std::sync::Arc;

use super::{
    Disk, Error, JournalSettings, Recovered,
    chain::Chain,
    frame::is_blank,
    header::{FILE_HEADER, FileHeader, FileKind},
    layout::{self, Layout},
    log::Log,
    replay::Replay,
    snapshot,
};

/// A file that was read.
#[derive(Debug)]
pub(super) struct LoadedFile {
    pub(super) name: String,
    /// The revision in its name.
    pub(super) base: u64,
    pub(super) bytes: Vec<u8>,
}

impl LoadedFile {
    fn load(disk: &dyn Disk, name: String, base: u64) -> Result<Self, Error> {
        let bytes = disk.read(&name).map_err(Error::io(disk, "read", &name))?;
        Ok(Self { name, base, bytes })
    }

    pub(super) fn header(&self) -> Option<FileHeader> {
        FileHeader::decode(FileKind::Log, &self.bytes).filter(|header| header.base == self.base)
    }

    /// Whether no frame was ever written.
    pub(super) fn is_unused(&self) -> bool {
        is_blank(self.bytes.get(FILE_HEADER..).unwrap_or_default())
    }
}

/// A recovered journal, ready for writing.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) log: Log,
    pub(super) recovered: Recovered,
    pub(super) snapshot_bytes: u64,
    /// Bytes in the logs before the last one.
    pub(super) sealed_bytes: u64,
}

pub(super) fn recover(disk: &Arc<dyn Disk>, settings: &JournalSettings) -> Result<Resumed, Error> {
    let layout = Layout::of(&**disk)?;
    let snapshot = match layout.snapshots.last() {
        Some(&revision) => Some(LoadedFile::load(
            &**disk,
            layout::snapshot(revision),
            revision,
        )?),
        None => None,
    };
    let logs = load_logs(&**disk, &layout)?;
    let mut replay = Replay::new(layout.base(), settings.tail_limit);
    if let Some(file) = &snapshot {
        snapshot::read(&**disk, file, &mut replay)?;
    }
    let chain = Chain::read(&**disk, &logs, &mut replay)?;

    let log = chain.repair(disk)?;
    // A name may be visible that is not durable; the file it replaces must not be removed before it
    // is.
    disk.sync_folder().map_err(Error::io(&**disk, "sync", ""))?;
    tidy(&**disk, layout.superseded().chain(chain.dropped.clone()))?;
    let (live, tail, tail_after) = replay.finish();
    Ok(Resumed {
        recovered: Recovered {
            revision: log.last(),
            live,
            tail,
            tail_after,
        },
        snapshot_bytes: snapshot.as_ref().map_or(0, |file| file.bytes.len() as u64),
        sealed_bytes: chain.sealed_bytes(),
        log,
    })
}

/// Reads the folder as [`recover`] does, and changes nothing.
pub(super) fn verify(disk: &dyn Disk) -> Result<(), Error> {
    let layout = Layout::of(disk)?;
    let snapshot = match layout.snapshots.last() {
        Some(&revision) => Some(LoadedFile::load(
            disk,
            layout::snapshot(revision),
            revision,
        )?),
        None => None,
    };
    let logs = load_logs(disk, &layout)?;
    let mut replay = Replay::new(layout.base(), 0);
    if let Some(file) = &snapshot {
        snapshot::read(disk, file, &mut replay)?;
    }
    Chain::read(disk, &logs, &mut replay).map(drop)
}

fn load_logs(disk: &dyn Disk, layout: &Layout) -> Result<Vec<LoadedFile>, Error> {
    let base = layout.base();
    let bases: Vec<u64> = layout.logs.iter().copied().filter(|b| *b >= base).collect();
    match bases.first() {
        Some(&first) if first == base => {}
        Some(&first) if layout.snapshots.is_empty() => {
            return Err(Error::Missing {
                path: disk.path(&layout::snapshot(first)),
                reason: "the oldest log begins at its revision",
            });
        }
        _ => {
            return Err(Error::Missing {
                path: disk.path(&layout::log(base)),
                reason: "every data folder has a log that begins where its snapshot ends",
            });
        }
    }
    bases
        .into_iter()
        .map(|base| LoadedFile::load(disk, layout::log(base), base))
        .collect()
}

/// Removes files durably.
pub(super) fn tidy(disk: &dyn Disk, names: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut removed = false;
    for name in names {
        disk.remove(&name)
            .map_err(Error::io(disk, "remove", &name))?;
        removed = true;
    }
    if removed {
        disk.sync_folder().map_err(Error::io(disk, "sync", ""))?;
    }
    Ok(())
}
