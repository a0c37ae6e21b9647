//! Errors of a data folder, each with what the operator can do about it.

use std::{io, path::PathBuf, sync::Arc};

use super::Disk;

/// A data folder that cannot be used, or can no longer be written.
///
/// Cloneable, because a journal that failed repeats its first cause to every later caller.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("cannot {action} {}; {remedy}", path.display())]
    Io {
        /// The attempted action, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What to do about it.
        remedy: &'static str,
        /// The error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// A file does not hold what was once written and synced.
    #[error(
        "{} is damaged at byte {offset}: {problem}; nothing was changed. restore the whole folder \
         from a backup, or move it away to start empty", path.display()
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// A required file does not exist.
    #[error(
        "{} is missing: {reason}; nothing was changed. put the file back, restore the whole \
         folder from a backup, or move the folder away to start empty", path.display()
    )]
    Missing {
        path: PathBuf,
        /// Why it must exist.
        reason: &'static str,
    },
    /// Another process has the folder open.
    #[error(
        "{} is in use by another process; stop that process, or choose another data folder",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written in a format that this program cannot read.
    #[error(
        "{} says format {found}, and this program reads format {supported}; use the program that \
         wrote the folder, or move the folder away to start empty", path.display()
    )]
    Format {
        path: PathBuf,
        /// The version it names.
        found: u32,
        /// The version written by this program.
        supported: u32,
    },
    /// The `FORMAT` file holds something else than a format.
    #[error(
        "{} does not name a data format; check that this is a data folder of neap, or restore \
         the file from a backup", path.display()
    )]
    NotAFormat {
        /// The `FORMAT` file.
        path: PathBuf,
    },
    /// The batch does not continue the history. Nothing was written.
    #[error("revision {revision} does not come after revision {last}")]
    Backwards {
        /// The revision out of order.
        revision: u64,
        /// The last one of the history.
        last: u64,
    },
    /// The batch is too large for one frame. Nothing was written.
    #[error("a batch of {bytes} bytes is larger than the journal takes ({limit} bytes)")]
    TooLarge {
        /// Size of the batch.
        bytes: usize,
        /// The largest allowed size.
        limit: usize,
    },
    /// The object is newer than the snapshot it was given for. Nothing took effect.
    #[error("an object of revision {revision} is not part of the snapshot of revision {snapshot}")]
    NotInSnapshot {
        /// Revision of the object.
        revision: u64,
        /// Revision of the snapshot.
        snapshot: u64,
    },
    /// A snapshot is being written already. Nothing was written.
    #[error("a compaction is running already; finish or drop it first")]
    Compacting,
}

impl Error {
    pub(super) fn io(
        disk: &dyn Disk,
        action: &'static str,
        name: &str,
    ) -> impl FnOnce(io::Error) -> Self {
        Self::io_at(action, disk.path(name))
    }

    pub(super) fn io_at(action: &'static str, path: PathBuf) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io {
            action,
            path,
            remedy: remedy(cause.kind()),
            cause: Arc::new(cause),
        }
    }

    /// The writer thread could not be started.
    pub(in crate::store) fn thread(cause: io::Error) -> Self {
        Self::Io {
            action: "start the writer thread of",
            path: PathBuf::from("the data folder"),
            remedy: "let this user run more threads, then start again",
            cause: Arc::new(cause),
        }
    }

    pub(super) fn corrupt(
        disk: &dyn Disk,
        name: &str,
        offset: usize,
        problem: &'static str,
    ) -> Self {
        Self::Corrupt {
            path: disk.path(name),
            offset: offset as u64,
            problem,
        }
    }
}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space on this disk, then start again; no acknowledged write is lost"
        }
        io::ErrorKind::FileTooLarge => {
            "let this process write larger files (ulimit -f), then start again; no acknowledged \
             write is lost"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make the folder writable for the user of this process, then start again"
        }
        io::ErrorKind::NotFound => {
            "something else removed it while it was in use: restore the folder from a backup"
        }
        _ => "check the disk and the kernel log, then start again; no acknowledged write is lost",
    }
}
