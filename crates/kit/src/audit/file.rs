//! The file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{Deed, Fault, Head, parts, verify::Chain};
use crate::why::{Code, Coded};

/// Why an audit file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk says no.
    #[error("the audit file {} could not be read or written", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody changed it. It is evidence, so nothing is added to it.
    #[error("the audit file {} is not as it was written; keep it, and move it and its parts away to begin a new one", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// How many records the parts before this one have.
        before: u64,
        /// What is wrong.
        #[source]
        fault: Fault,
    },
}

/// A file that is added to.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    pub(super) path: PathBuf,
    pub(super) head: Head,
    /// The first record of the file.
    first: u64,
    /// So much of it is good.
    length: u64,
    /// It is full once it is as long as this.
    limit: u64,
}

impl Log {
    /// Opens the file, or begins one for its owner alone. A record that was being written when the
    /// process ended is taken away: nobody was told that it is there. Full parts before it are not
    /// read, but for the record that this one goes on after.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, Error> {
        let disk = disk(path);
        let parts = parts::list(path).map_err(&disk)?;
        let before = match parts.last() {
            Some((first, part)) => end_of(part, *first)?,
            None => Head::default(),
        };
        let file = private(path).map_err(&disk)?;
        let mut chain = Chain::new(before.clone(), None);
        let (length, fault) = read(&file, &mut chain, None).map_err(&disk)?;
        match fault {
            None => {}
            Some(Fault::Torn { index }) => {
                tracing::warn!(path = %path.display(), record = index, "an incomplete audit record is taken away");
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
        })
    }

    /// Adds records; they are on disk when it returns. After a failure none of them counts.
    pub(super) fn append(&mut self, deeds: &[Deed]) -> Result<(), Error> {
        let (mut text, mut head) = (String::new(), self.head.clone());
        for deed in deeds {
            let (line, next) = head.follow(deed);
            text.push_str(&line);
            text.push('\n');
            head = next;
        }
        self.write(&text).map_err(disk(&self.path))?;
        self.length += text.len() as u64;
        self.head = head;
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.length >= self.limit {
            self.turn_over()?;
        }
        // A failed attempt may have left some of it.
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }

    /// Puts the full file aside and begins another. May be tried again after a failure or a crash
    /// at any point.
    fn turn_over(&mut self) -> io::Result<()> {
        let part = parts::full(&self.path, self.first);
        if self.path.exists() {
            if part.exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(&self.path, &part)?;
        }
        self.file = private(&self.path)?;
        if let Some(folder) = part.parent().filter(|it| !it.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        self.first = self.head.index + 1;
        self.length = 0;
        Ok(())
    }
}

/// Whether there is an audit, be it that only full parts of it are left.
pub fn is_there(path: &Path) -> bool {
    path.exists() || parts::list(path).is_ok_and(|parts| !parts.is_empty())
}

/// What [`super::verify`] says of a file and of the full parts before it, without holding all of it.
pub fn verify_file(path: &Path, anchor: Option<&Head>) -> Result<Head, Error> {
    let parts = parts::list(path).map_err(disk(path))?;
    let mut chain = Chain::new(Head::default(), anchor);
    for (_, part) in &parts {
        read_part(part, &mut chain, None)?;
    }
    let before = chain.head.index;
    // The process may have ended when it had put the last part aside, and begun none.
    if parts.is_empty() || path.exists() {
        read_part(path, &mut chain, None)?;
    }
    chain
        .end()
        .map_err(|fault| Error::damaged(path, before, fault))
}

/// Whether the file leads through `anchor` to `end`, whatever follows: it may be added to just now.
/// Parts that were full before the anchor are not read.
pub(super) fn verify_up_to(path: &Path, end: &Head, anchor: Option<&Head>) -> Result<(), Error> {
    let parts = parts::list(path).map_err(disk(path))?;
    let from = anchor.map_or(end.index, |anchor| anchor.index.min(end.index));
    // Those after the last that begins at or before the record.
    let old = parts.iter().rposition(|(first, _)| *first <= from);
    let (old, recent) = parts.split_at(old.unwrap_or(0));
    let before = match old.last() {
        Some((first, part)) => end_of(part, *first)?,
        None => Head::default(),
    };
    let mut chain = Chain::new(before, anchor);
    for (_, part) in recent {
        read_part(part, &mut chain, Some(end.index))?;
    }
    let before = chain.head.index;
    if parts.is_empty() || path.exists() {
        read_part(path, &mut chain, Some(end.index))?;
    }
    let damaged = |fault| Error::damaged(path, before, fault);
    let found = chain.end().map_err(damaged)?;
    if found.index < end.index {
        return Err(damaged(Fault::Truncated {
            last: found.index,
            anchored: end.index,
        }));
    }
    if found.hash != end.hash {
        return Err(damaged(Fault::Rewritten { index: end.index }));
    }
    Ok(())
}

fn read_part(path: &Path, chain: &mut Chain<'_>, last: Option<u64>) -> Result<(), Error> {
    let file = File::open(path).map_err(disk(path))?;
    let before = chain.head.index;
    let (_, fault) = read(&file, chain, last).map_err(disk(path))?;
    fault.map_or(Ok(()), |fault| Err(Error::damaged(path, before, fault)))
}

/// Takes the lines of a file up to record `last`: how much of it is good, and what is wrong with the
/// rest.
fn read(file: &File, chain: &mut Chain<'_>, last: Option<u64>) -> io::Result<(u64, Option<Fault>)> {
    let mut lines = BufReader::new(file);
    let (mut good, mut line) = (0, Vec::new());
    chain.begin_part();
    while last != Some(chain.head.index) && lines.read_until(b'\n', &mut line)? > 0 {
        // Bytes that are no text were not written by us: they do not fit their hash.
        let text = String::from_utf8_lossy(&line);
        if let Err(fault) = chain.take(&text) {
            return Ok((good, Some(fault)));
        }
        good += line.len() as u64;
        line.clear();
    }
    Ok((good, None))
}

fn end_of(part: &Path, first: u64) -> Result<Head, Error> {
    let end = parts::end_of(part).map_err(disk(part))?;
    end.ok_or_else(|| Error::damaged(part, first - 1, Fault::Unreadable { line: first }))
}

fn disk(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Disk {
        path: path.to_owned(),
        source,
    }
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Error {
    fn damaged(path: &Path, before: u64, fault: Fault) -> Self {
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
