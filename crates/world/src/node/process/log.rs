//! The log of a container: its output line by line in files.
//!
//! A log has up to four files: those of the running process, current and rotated, and those of the
//! previous process.

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

/// The maximum length of a line in the file; a longer one is split, so that one without an end
/// fills no memory.
const MAX_LINE_BYTES: usize = 16 << 10;
/// The size at which a file is rotated.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// One line of a log file in the kubelet's format: time, stream, whether the line ends here, text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The time in RFC 3339.
    pub time: &'a str,
    /// `stdout` or `stderr`.
    pub stream: &'a str,
    /// Whether the line ends here.
    pub whole: bool,
    /// The output, which may not be UTF-8.
    pub text: &'a [u8],
}

impl<'a> LogLine<'a> {
    /// Parses a line of the file, without its newline.
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

/// The paths of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerLog(PathBuf);

impl ContainerLog {
    /// The log of the container with this folder.
    pub fn of(folder: &Path) -> Self {
        Self(folder.join("log"))
    }

    /// The current file of the last process.
    pub fn current(&self) -> PathBuf {
        self.0.clone()
    }

    /// Its rotated file.
    pub fn earlier(&self) -> PathBuf {
        self.with(".1")
    }

    /// The log of the previous process.
    pub fn previous(&self) -> Self {
        Self(self.with(".previous"))
    }

    fn with(&self, end: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(end);
        path.into()
    }

    /// Moves the log aside for that of another process.
    fn rotate_process(&self) -> io::Result<()> {
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

/// The writer of a log.
#[derive(Debug)]
struct LogWriter {
    log: ContainerLog,
    file: File,
    size: u64,
    /// Whether the loss of lines has been logged already.
    loss_logged: bool,
}

impl LogWriter {
    fn open(log: &ContainerLog) -> io::Result<Self> {
        log.rotate_process()?;
        Ok(Self {
            log: log.clone(),
            file: open(log)?,
            size: 0,
            loss_logged: false,
        })
    }

    /// Appends lines. What cannot be written is lost: a container continues when a disk is full.
    fn add(&mut self, lines: &[u8]) {
        match self.write(lines) {
            Ok(()) => self.loss_logged = false,
            Err(error) if !self.loss_logged => {
                self.loss_logged = true;
                let log = self.log.0.display();
                tracing::warn!(%log, %error, "the output of a container is lost while its log cannot be written");
            }
            Err(_) => {}
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + lines.len() as u64 > MAX_FILE_BYTES {
            // The file is gone if the last attempt stopped half-way.
            absent_is_fine(fs::rename(self.log.current(), self.log.earlier()))?;
            self.file = open(&self.log)?;
            self.size = 0;
        }
        let written = self.file.write_all(lines);
        if written.is_err() {
            // Half a line would corrupt the next one.
            let _ = self.file.set_len(self.size);
        } else {
            self.size += lines.len() as u64;
        }
        written
    }
}

fn open(log: &ContainerLog) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log.current())
}

/// Copies two streams to a log.
#[derive(Debug)]
pub struct OutputLogger {
    out: Receiver,
    err: Receiver,
    copying: LogCopier,
}

#[derive(Debug, Clone)]
struct LogCopier {
    writer: Arc<Mutex<LogWriter>>,
    clock: Clock,
    printed: watch::Sender<u64>,
}

impl OutputLogger {
    pub(super) fn new(
        out: OwnedFd,
        err: OwnedFd,
        log: &ContainerLog,
        clock: Clock,
    ) -> io::Result<(Self, watch::Receiver<u64>)> {
        let (printed, prints) = watch::channel(0);
        let copying = LogCopier {
            writer: Arc::new(Mutex::new(LogWriter::open(log)?)),
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

    /// Logs the output until the other ends are closed.
    pub async fn run(self) {
        let (out, err) = (BufReader::new(self.out), BufReader::new(self.err));
        let out = self.copying.copy(out, "stdout");
        let err = self.copying.copy(err, "stderr");
        tokio::join!(out, err);
    }
}

impl LogCopier {
    async fn copy(&self, mut from: BufReader<impl AsyncRead + Unpin>, stream: &str) {
        // Errors of reading from a pipe are permanent.
        while let Ok(found) = from.fill_buf().await {
            if found.is_empty() {
                return;
            }
            let used = found.len();
            let lines = lines(found, &self.clock.now().to_string(), stream);
            from.consume(used);
            let writer = self.writer.clone();
            let written = tokio::task::spawn_blocking(move || writer.lock().add(&lines));
            if written.await.is_err() {
                return;
            }
            self.printed.send_modify(|count| *count += 1);
        }
    }
}

/// Output as lines of the file.
fn lines(printed: &[u8], time: &str, stream: &str) -> Vec<u8> {
    let mut lines = Vec::with_capacity(printed.len() + 64);
    let pieces = printed.split_inclusive(|&byte| byte == b'\n');
    for piece in pieces.flat_map(|line| line.chunks(MAX_LINE_BYTES)) {
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
    fn output_is_split_into_lines() {
        let logged = lines(b"one\n\ntwo", "T", "stdout");
        assert_eq!(logged, b"T stdout F one\nT stdout F \nT stdout P two\n");
        let logged = lines(&vec![b'x'; MAX_LINE_BYTES + 1], "T", "stderr");
        assert_eq!(logged.split(|byte| *byte == b'\n').count(), 3);
        let line = LogLine::read(b"T stdout P a b").unwrap();
        assert_eq!(
            (line.time, line.whole, line.text),
            ("T", false, &b"a b"[..])
        );
    }

    #[test]
    fn a_log_is_rotated_and_the_previous_one_remains() {
        let folder = tempfile::tempdir().unwrap();
        let log = ContainerLog::of(folder.path());
        let mut writer = LogWriter::open(&log).unwrap();
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..35 {
            writer.add(&megabyte);
        }
        let sizes = |log: &ContainerLog| {
            [log.current(), log.earlier()]
                .map(|path| fs::metadata(path).map_or(0, |file| file.len() >> 20))
        };
        assert_eq!(sizes(&log), [5, 10]);
        LogWriter::open(&log).unwrap().add(b"next\n");
        assert_eq!(sizes(&log.previous()), [5, 10]);
        assert_eq!(fs::read(log.current()).unwrap(), b"next\n");
        assert!(!log.earlier().exists());
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::open(&ContainerLog::of(folder.path())).unwrap();
        let file = std::mem::replace(&mut writer.file, File::create("/dev/full").unwrap());
        writer.add(b"lost\n");
        assert!(writer.loss_logged);
        writer.file = file;
        writer.add(b"kept\n");
        assert!(!writer.loss_logged);
        assert_eq!(fs::read(folder.path().join("log")).unwrap(), b"kept\n");
    }
}
