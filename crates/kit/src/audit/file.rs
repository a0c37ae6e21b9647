//! The audit file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{
    AuditedAction, ChainFault, ChainHead,
    parts::{self, Part},
    verify::Chain,
};
use crate::why::{Code, Coded};

/// Why an audit file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("the audit file {} could not be read or written", path.display())]
    Disk {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file was changed after it was written. It is evidence, so nothing is appended to it.
    #[error("the audit file {} was changed after it was written; keep it, and move it and its parts away to start a new one", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The number of records in the parts before this one.
        before: u64,
        /// What is wrong with the chain.
        #[source]
        fault: ChainFault,
    },
}

/// An audit file that is open for appending.
#[derive(Debug)]
pub(super) struct AuditLog {
    file: File,
    pub(super) path: PathBuf,
    pub(super) head: ChainHead,
    /// The index of the first record of the file.
    first: u64,
    /// The length of the valid content.
    length: u64,
    /// The length from which the file is full.
    limit: u64,
    /// Whether the directory entries of the file and of the part before it may not be on disk yet.
    folder_unsynced: bool,
    /// Writes the directory entries of a folder to disk.
    pub(super) sync_folder: fn(&Path) -> io::Result<()>,
}

impl AuditLog {
    /// Opens the file, or creates one that only its owner can read. An incomplete last record is
    /// removed: the process ended while it was written, and it was not acknowledged. Of full parts only
    /// the last record is read, which the chain continues from.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, Error> {
        let disk = disk_error(path);
        let parts = parts::list(path).map_err(&disk)?;
        let before = match parts.last() {
            Some((first, part)) => head_of(part, *first)?,
            None => ChainHead::default(),
        };
        let file = open_private(path).map_err(&disk)?;
        let mut chain = Chain::new(before.clone(), None);
        let (length, fault) = read(&file, &mut chain, None).map_err(&disk)?;
        match fault {
            None => {}
            Some(ChainFault::Torn { index }) => {
                tracing::warn!(path = %path.display(), record = index, "an incomplete audit record is removed");
                // Before anything else: the file may be full, and full parts are never written again.
                let cut = file.set_len(length).and_then(|()| file.sync_data());
                cut.map_err(&disk)?;
            }
            Some(fault) => return Err(Error::damaged(path, before.index, fault)),
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            head: chain.head,
            first: before.index + 1,
            length,
            limit,
            // The process that created or renamed a file may have ended before the folder was synced.
            folder_unsynced: true,
            sync_folder,
        })
    }

    /// Appends records; they are on disk when it returns. After a failure none of them counts.
    pub(super) fn append(&mut self, actions: &[AuditedAction]) -> Result<(), Error> {
        let (mut text, mut head) = (String::new(), self.head.clone());
        for action in actions {
            let (line, next) = head.append(action);
            text.push_str(&line);
            text.push('\n');
            head = next;
        }
        self.write(&text).map_err(disk_error(&self.path))?;
        self.length += text.len() as u64;
        self.head = head;
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        // A file without records is not rotated.
        if self.length >= self.limit.max(1) {
            self.rotate()?;
        }
        if self.folder_unsynced {
            (self.sync_folder)(parts::folder(&self.path))?;
            self.folder_unsynced = false;
        }
        // A failed attempt may have left an incomplete record.
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }

    /// Renames the full file and creates the next one. Can be repeated after a failure or a crash at
    /// any point.
    fn rotate(&mut self) -> io::Result<()> {
        let part = parts::full_part_path(&self.path, self.first);
        if self.path.exists() {
            if part.exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(&self.path, &part)?;
        }
        self.file = open_private(&self.path)?;
        self.first = self.head.index + 1;
        self.length = 0;
        self.folder_unsynced = true;
        Ok(())
    }
}

/// Whether an audit exists at `path`, or at least full parts of one.
pub fn audit_exists(path: &Path) -> bool {
    path.exists() || parts::list(path).is_ok_and(|parts| !parts.is_empty())
}

/// Verifies a file and the full parts before it, as [`super::verify`] does, without loading all of it.
pub fn verify_file(path: &Path, anchor: Option<&ChainHead>) -> Result<ChainHead, Error> {
    verify_stable(path, |parts| verify_parts(path, parts, anchor))
}

/// Runs `verify` on the parts of the audit at `path`. If it fails and the file was rotated meanwhile,
/// runs it once more with the new list of parts.
pub(super) fn verify_stable<T>(
    path: &Path,
    mut verify: impl FnMut(&[Part]) -> Result<T, Error>,
) -> Result<T, Error> {
    let parts = parts::list(path).map_err(disk_error(path))?;
    let found = verify(&parts);
    if found.is_ok() {
        return found;
    }
    let now = parts::list(path).map_err(disk_error(path))?;
    if now == parts { found } else { verify(&now) }
}

fn verify_parts(
    path: &Path,
    parts: &[Part],
    anchor: Option<&ChainHead>,
) -> Result<ChainHead, Error> {
    let mut chain = Chain::new(ChainHead::default(), anchor);
    for (_, part) in parts {
        read_part(part, &mut chain, None)?;
    }
    let before = chain.head.index;
    // The process may have ended after it renamed the last part and before it created the next.
    if parts.is_empty() || path.exists() {
        read_part(path, &mut chain, None)?;
    }
    chain
        .end()
        .map_err(|fault| Error::damaged(path, before, fault))
}

/// Verifies that the file leads through `anchor` to `end`. Later records are not read, because they may
/// be in the course of being written; neither are parts that were full before the anchor.
pub(super) fn verify_up_to(
    path: &Path,
    end: &ChainHead,
    anchor: Option<&ChainHead>,
) -> Result<(), Error> {
    verify_stable(path, |parts| verify_parts_up_to(path, parts, end, anchor))
}

/// The same for `parts`, listed after `end` was on disk.
pub(super) fn verify_parts_up_to(
    path: &Path,
    parts: &[Part],
    end: &ChainHead,
    anchor: Option<&ChainHead>,
) -> Result<(), Error> {
    let from = anchor.map_or(end.index, |anchor| anchor.index.min(end.index));
    // Recent are the parts from the last one that begins at or before this record.
    let old = parts.iter().rposition(|(first, _)| *first <= from);
    let (old, recent) = parts.split_at(old.unwrap_or(0));
    let before = match old.last() {
        Some((first, part)) => head_of(part, *first)?,
        None => ChainHead::default(),
    };
    let mut chain = Chain::new(before, anchor);
    for (_, part) in recent {
        read_part(part, &mut chain, Some(end.index))?;
    }
    let before = chain.head.index;
    if parts.is_empty() || (before < end.index && path.exists()) {
        read_part(path, &mut chain, Some(end.index))?;
    }
    let damaged = |fault| Error::damaged(path, before, fault);
    let found = chain.end().map_err(damaged)?;
    if found.index < end.index {
        return Err(damaged(ChainFault::Truncated {
            last: found.index,
            anchored: end.index,
        }));
    }
    if found.hash != end.hash {
        return Err(damaged(ChainFault::Rewritten { index: end.index }));
    }
    Ok(())
}

fn read_part(path: &Path, chain: &mut Chain<'_>, last: Option<u64>) -> Result<(), Error> {
    let file = File::open(path).map_err(disk_error(path))?;
    let before = chain.head.index;
    let (_, fault) = read(&file, chain, last).map_err(disk_error(path))?;
    fault.map_or(Ok(()), |fault| Err(Error::damaged(path, before, fault)))
}

/// Verifies the lines of a file up to record `last`. Returns the length of the valid content, and the
/// fault after it.
fn read(
    file: &File,
    chain: &mut Chain<'_>,
    last: Option<u64>,
) -> io::Result<(u64, Option<ChainFault>)> {
    let mut lines = BufReader::new(file);
    let (mut valid, mut line) = (0, Vec::new());
    chain.begin_part();
    while last != Some(chain.head.index) && lines.read_until(b'\n', &mut line)? > 0 {
        // Bytes that are not UTF-8 were not written here: they do not match their hash.
        let text = String::from_utf8_lossy(&line);
        if let Err(fault) = chain.verify_line(&text) {
            return Ok((valid, Some(fault)));
        }
        valid += line.len() as u64;
        line.clear();
    }
    Ok((valid, None))
}

fn head_of(part: &Path, first: u64) -> Result<ChainHead, Error> {
    let end = parts::head_of(part).map_err(disk_error(part))?;
    end.ok_or_else(|| Error::damaged(part, first - 1, ChainFault::Unreadable { line: first }))
}

fn disk_error(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Disk {
        path: path.to_owned(),
        source,
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Error {
    fn damaged(path: &Path, before: u64, fault: ChainFault) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            before,
            fault,
        }
    }
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Disk { .. } => Code("NT-KIT-011"),
            Self::Damaged { .. } => Code("NT-KIT-010"),
        }
    }
}
