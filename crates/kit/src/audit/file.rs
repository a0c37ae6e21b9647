//! The file.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{Deed, Fault, Head, verify::Chain};
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
    #[error("the audit file {} is not as it was written; keep it, and move it away to begin a new one", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
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
    /// So much of it is good.
    length: u64,
}

impl Log {
    /// Opens the file, or begins one for its owner alone. A record that was being written when the
    /// process ended is taken away: nobody was told that it is there.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let disk = |source| Error::Disk {
            path: path.to_owned(),
            source,
        };
        let file = private(path).map_err(disk)?;
        let (length, ended) = read(&file, None, None).map_err(disk)?;
        let head = match ended {
            Ok(head) => head,
            Err((head, Fault::Torn { index })) => {
                tracing::warn!(path = %path.display(), record = index, "an incomplete audit record is taken away");
                head
            }
            Err((_, fault)) => {
                let path = path.to_owned();
                return Err(Error::Damaged { path, fault });
            }
        };
        Ok(Self {
            file,
            path: path.to_owned(),
            head,
            length,
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
        self.write(&text).map_err(|source| Error::Disk {
            path: self.path.clone(),
            source,
        })?;
        self.length += text.len() as u64;
        self.head = head;
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        // A failed attempt may have left some of it.
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }
}

/// What [`super::verify`] says of a file, without holding all of it.
pub fn verify_file(path: &Path, anchor: Option<&Head>) -> Result<Head, Error> {
    let disk = |source| Error::Disk {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(disk)?;
    let (_, ended) = read(&file, anchor, None).map_err(disk)?;
    ended.map_err(|(_, fault)| Error::Damaged {
        path: path.to_owned(),
        fault,
    })
}

/// Whether the file leads through `anchor` to `end`, whatever follows: it may be added to just now.
pub(super) fn verify_up_to(path: &Path, end: &Head, anchor: Option<&Head>) -> Result<(), Error> {
    let disk = |source| Error::Disk {
        path: path.to_owned(),
        source,
    };
    let damaged = |fault| Error::Damaged {
        path: path.to_owned(),
        fault,
    };
    let file = File::open(path).map_err(disk)?;
    let (_, ended) = read(&file, anchor, Some(end.index)).map_err(disk)?;
    let found = ended.map_err(|(_, fault)| damaged(fault))?;
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

type Ended = Result<Head, (Head, Fault)>;

/// How much of the file is good, and where its chain ends or breaks. Nothing after record `last` is
/// looked at.
fn read(file: &File, anchor: Option<&Head>, last: Option<u64>) -> io::Result<(u64, Ended)> {
    let mut lines = BufReader::new(file);
    let (mut chain, mut good, mut line) = (Chain::new(anchor), 0, Vec::new());
    while last != Some(chain.head.index) && lines.read_until(b'\n', &mut line)? > 0 {
        // Bytes that are no text were not written by us: they do not fit their hash.
        let text = String::from_utf8_lossy(&line);
        if let Err(fault) = chain.take(&text) {
            return Ok((good, Err((chain.head, fault))));
        }
        good += line.len() as u64;
        line.clear();
    }
    let head = chain.head.clone();
    Ok((good, chain.end().map_err(|fault| (head, fault))))
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Disk { .. } => Code("NT-KIT-011"),
            Self::Damaged { .. } => Code("NT-KIT-010"),
        }
    }
}
