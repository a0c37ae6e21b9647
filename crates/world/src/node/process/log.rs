//! What a container prints, line by line in a file.
//!
//! A log is kept in up to four files: that of the process which runs, what came before in the same
//! one when it had grown too long, and both for the process before.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    net::unix::pipe::Receiver,
    sync::watch,
};

/// A longer line is cut into pieces, so that one without an end fills no memory.
const LONGEST: usize = 16 << 10;
/// A longer file becomes the earlier one.
const LARGEST: u64 = 10 << 20;

/// What a container printed in one piece, as a kubelet keeps it: time, stream, whether the line
/// ends here, text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// When, in the form of RFC 3339.
    pub time: &'a str,
    /// `stdout` or `stderr`.
    pub stream: &'a str,
    /// Whether the line ends here.
    pub whole: bool,
    /// What it says, which may be no text at all.
    pub text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Reads a line of the file, without its end.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |&byte| byte == b' ');
        let mut word = || std::str::from_utf8(parts.next()?).ok();
        let (time, stream, mark) = (word()?, word()?, word()?);
        Some(Self {
            time,
            stream,
            whole: mark == "F",
            text: parts.next()?,
        })
    }
}

/// Where the log of a container is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log(PathBuf);

impl Log {
    /// The log of the container that has this folder.
    pub fn of(folder: &Path) -> Self {
        Self(folder.join("log"))
    }

    /// What the last process printed.
    pub fn current(&self) -> PathBuf {
        self.0.clone()
    }

    /// What it printed before that, and which has become too long for one file.
    pub fn earlier(&self) -> PathBuf {
        self.with(".1")
    }

    /// The log of the process before.
    pub fn previous(&self) -> Self {
        Self(self.with(".previous"))
    }

    fn with(&self, end: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(end);
        path.into()
    }

    /// Makes room for the log of another process.
    fn hand_over(&self) -> io::Result<()> {
        let previous = self.previous();
        let moved = [
            (self.earlier(), previous.earlier()),
            (self.current(), previous.current()),
        ];
        for (from, to) in moved {
            absent_is_fine(fs::remove_file(&to))?;
            absent_is_fine(fs::rename(from, to))?;
        }
        Ok(())
    }
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A log that is written.
#[derive(Debug)]
struct Keeper {
    log: Log,
    file: File,
    size: u64,
    /// Somebody was told already that lines are lost.
    complained: bool,
}

impl Keeper {
    fn open(log: &Log) -> io::Result<Self> {
        log.hand_over()?;
        Ok(Self {
            log: log.clone(),
            file: open(log)?,
            size: 0,
            complained: false,
        })
    }

    /// Writes lines down. What cannot be written is lost: a container goes on when a disk is full.
    fn add(&mut self, lines: &[u8]) {
        match self.write(lines) {
            Ok(()) => self.complained = false,
            Err(error) if !self.complained => {
                self.complained = true;
                let log = self.log.0.display();
                tracing::warn!(%log, %error, "what a container prints is lost until this is mended");
            }
            Err(_) => {}
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + lines.len() as u64 > LARGEST {
            // It is gone if the last try stopped half-way.
            absent_is_fine(fs::rename(self.log.current(), self.log.earlier()))?;
            self.file = open(&self.log)?;
            self.size = 0;
        }
        let written = self.file.write_all(lines);
        if written.is_err() {
            // Half a line would spoil the next one.
            let _ = self.file.set_len(self.size);
        } else {
            self.size += lines.len() as u64;
        }
        written
    }
}

fn open(log: &Log) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log.current())
}

/// Two streams on their way into a file.
#[derive(Debug)]
pub struct Lines {
    out: Receiver,
    err: Receiver,
    copying: Copying,
}

#[derive(Debug, Clone)]
struct Copying {
    keeper: Arc<Mutex<Keeper>>,
    clock: Clock,
    printed: watch::Sender<u64>,
}

impl Lines {
    pub(super) fn new(
        out: OwnedFd,
        err: OwnedFd,
        log: &Log,
        clock: Clock,
    ) -> io::Result<(Self, watch::Receiver<u64>)> {
        let (printed, prints) = watch::channel(0);
        let copying = Copying {
            keeper: Arc::new(Mutex::new(Keeper::open(log)?)),
            clock,
            printed,
        };
        let lines = Self {
            out: Receiver::from_owned_fd(out)?,
            err: Receiver::from_owned_fd(err)?,
            copying,
        };
        Ok((lines, prints))
    }

    /// Writes down what is printed until nobody holds the other end any more.
    pub async fn keep(self) {
        let (out, err) = (BufReader::new(self.out), BufReader::new(self.err));
        let out = self.copying.copy(out, "stdout");
        let err = self.copying.copy(err, "stderr");
        tokio::join!(out, err);
    }
}

impl Copying {
    async fn copy(&self, mut from: BufReader<impl AsyncRead + Unpin>, stream: &str) {
        // Reading from a pipe fails for no reason that would go away.
        while let Ok(found) = from.fill_buf().await {
            if found.is_empty() {
                return;
            }
            let used = found.len();
            let lines = lines(found, &self.clock.now().to_string(), stream);
            from.consume(used);
            let keeper = self.keeper.clone();
            let written = tokio::task::spawn_blocking(move || keeper.lock().add(&lines));
            if written.await.is_err() {
                return;
            }
            self.printed.send_modify(|count| *count += 1);
        }
    }
}

/// What was printed, in lines of the file.
fn lines(printed: &[u8], time: &str, stream: &str) -> Vec<u8> {
    let mut lines = Vec::with_capacity(printed.len() + 64);
    let pieces = printed.split_inclusive(|&byte| byte == b'\n');
    for piece in pieces.flat_map(|line| line.chunks(LONGEST)) {
        let (text, mark) = match piece.strip_suffix(b"\n") {
            Some(text) => (text, 'F'),
            None => (piece, 'P'),
        };
        lines.extend_from_slice(format!("{time} {stream} {mark} ").as_bytes());
        lines.extend_from_slice(text);
        lines.push(b'\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_is_cut_into_lines() {
        let kept = lines(b"one\n\ntwo", "T", "stdout");
        assert_eq!(kept, b"T stdout F one\nT stdout F \nT stdout P two\n");
        let kept = lines(&vec![b'x'; LONGEST + 1], "T", "stderr");
        assert_eq!(kept.split(|byte| *byte == b'\n').count(), 3);
        let line = Line::read(b"T stdout P a b").unwrap();
        assert_eq!(
            (line.time, line.whole, line.text),
            ("T", false, &b"a b"[..])
        );
    }

    #[test]
    fn a_log_is_bounded_and_the_one_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(folder.path());
        let mut keeper = Keeper::open(&log).unwrap();
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..35 {
            keeper.add(&megabyte);
        }
        let sizes = |log: &Log| {
            [log.current(), log.earlier()]
                .map(|path| fs::metadata(path).map_or(0, |file| file.len() >> 20))
        };
        assert_eq!(sizes(&log), [5, 10]);
        Keeper::open(&log).unwrap().add(b"next\n");
        assert_eq!(sizes(&log.previous()), [5, 10]);
        assert_eq!(fs::read(log.current()).unwrap(), b"next\n");
        assert!(!log.earlier().exists());
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut keeper = Keeper::open(&Log::of(folder.path())).unwrap();
        let file = std::mem::replace(&mut keeper.file, File::create("/dev/full").unwrap());
        keeper.add(b"lost\n");
        assert!(keeper.complained);
        keeper.file = file;
        keeper.add(b"kept\n");
        assert!(!keeper.complained);
        assert_eq!(fs::read(folder.path().join("log")).unwrap(), b"kept\n");
    }
}
