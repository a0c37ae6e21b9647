//! Reads what a container printed, and goes on as it prints.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek},
    os::unix::fs::MetadataExt,
};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::node::process::{Line, Log};

/// How much is read and sent in one piece.
const PIECE: usize = 64 << 10;

/// Which part of a log is wanted, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Of which container.
    pub container: String,
    /// Go on until it ends.
    pub follow: bool,
    /// Of the process before this one.
    pub previous: bool,
    /// Only so many lines from the end.
    pub tail: Option<u64>,
    /// Only what was printed since.
    pub since: Option<Timestamp>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// At most so many bytes.
    pub limit: Option<u64>,
}

/// Reads a log from files that are there. With `printed` it goes on whenever that changes, until it
/// closes.
pub fn read(
    log: &Log,
    options: &LogOptions,
    printed: Option<watch::Receiver<u64>>,
) -> io::Result<BoxStream<'static, Bytes>> {
    let tape = Tape::open(log, options, printed.clone())?;
    let pieces = stream::unfold((tape, printed), |(tape, mut printed)| async move {
        let mut tape = tape;
        loop {
            let is_last = match &mut printed {
                // Whatever comes after this look is noticed later.
                Some(printed) => {
                    printed.has_changed().is_err() || {
                        printed.mark_unchanged();
                        false
                    }
                }
                None => true,
            };
            let read = move || {
                let piece = tape.more();
                (tape, piece)
            };
            let (back, piece) = tokio::task::spawn_blocking(read).await.ok()?;
            tape = back;
            match piece {
                Ok(Some(piece)) => return Some((piece, (tape, printed))),
                Ok(None) if tape.left == Some(0) || is_last => return None,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a log cannot be read any further");
                    return None;
                }
            }
            // Closed if it prints no more; one look is left then.
            let _ = printed.as_mut()?.changed().await;
        }
    });
    Ok(pieces.boxed())
}

/// A log as it is read.
struct Tape {
    log: Log,
    /// Open as long as the log is that of the same process.
    printed: Option<watch::Receiver<u64>>,
    /// The one that is read, and those that come after.
    files: VecDeque<File>,
    /// The begin of a line whose end is not written yet.
    rest: Vec<u8>,
    /// How many lines are left out.
    skip: u64,
    since: Option<Timestamp>,
    timestamps: bool,
    left: Option<u64>,
    /// Whether the next piece begins a line.
    at_start: bool,
}

impl Tape {
    fn open(
        log: &Log,
        options: &LogOptions,
        printed: Option<watch::Receiver<u64>>,
    ) -> io::Result<Self> {
        let mut tape = Self {
            log: log.clone(),
            printed,
            files: files(log)?,
            rest: Vec::new(),
            skip: 0,
            since: options.since,
            timestamps: options.timestamps,
            left: options.limit,
            at_start: true,
        };
        if let Some(tail) = options.tail {
            tape.skip = tape.count()?.saturating_sub(tail);
        }
        Ok(tape)
    }

    /// How many lines there are, of those that are wanted.
    fn count(&mut self) -> io::Result<u64> {
        let (mut count, mut is_open) = (0, false);
        let mut rest = Vec::new();
        for file in &mut self.files {
            let mut buffer = vec![0; PIECE];
            loop {
                let read = file.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                rest.extend_from_slice(&buffer[..read]);
                for line in take_lines(&mut rest).split(|&byte| byte == b'\n') {
                    if let Some(line) = Line::read(line).filter(|line| wanted(line, self.since)) {
                        count += u64::from(!is_open);
                        is_open = !line.whole;
                    }
                }
            }
            file.rewind()?;
        }
        Ok(count)
    }

    /// The next piece that is wanted; nothing if no more is there now.
    fn more(&mut self) -> io::Result<Option<Bytes>> {
        let mut buffer = vec![0; PIECE];
        while self.left != Some(0) {
            let Some(file) = self.files.front_mut() else {
                return Ok(None);
            };
            let read = file.read(&mut buffer)?;
            if read == 0 {
                if self.files.len() > 1 {
                    self.files.pop_front();
                } else if !self.turn_over()? {
                    return Ok(None);
                }
                continue;
            }
            self.rest.extend_from_slice(&buffer[..read]);
            let shown = self.show();
            if !shown.is_empty() {
                return Ok(Some(shown.into()));
            }
        }
        Ok(None)
    }

    /// Whether another file is to be read after the one that was. If the log has turned over more
    /// than once since the last look, what came in between is lost, and not what comes after.
    fn turn_over(&mut self) -> io::Result<bool> {
        let Some(file) = self.files.back() else {
            return Ok(false);
        };
        let own = file.metadata()?.ino();
        let mut next = match files(&self.log) {
            // It turns over this very moment, and somebody is told when it has.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            next => next?,
        };
        let inodes = next.iter().map(|file| Ok(file.metadata()?.ino()));
        let inodes: Vec<u64> = inodes.collect::<io::Result<_>>()?;
        match inodes.iter().position(|&inode| inode == own) {
            Some(at) => drop(next.drain(..=at)),
            // They may be those of another process, which begins after this one has ended.
            None if !self.is_of_one_process() => return Ok(false),
            None => {}
        }
        let is_more = !next.is_empty();
        self.files.append(&mut next);
        Ok(is_more)
    }

    fn is_of_one_process(&self) -> bool {
        let printed = self.printed.as_ref();
        printed.is_some_and(|printed| printed.has_changed().is_ok())
    }

    fn show(&mut self) -> Vec<u8> {
        let lines = take_lines(&mut self.rest);
        let mut shown = Vec::with_capacity(lines.len());
        for line in lines.split(|&byte| byte == b'\n') {
            let line = Line::read(line).filter(|line| wanted(line, self.since));
            let Some(line) = line else {
                continue;
            };
            let starts = std::mem::replace(&mut self.at_start, line.whole);
            if self.skip > 0 {
                self.skip -= u64::from(line.whole);
                continue;
            }
            if starts && self.timestamps {
                shown.extend_from_slice(line.time.as_bytes());
                shown.push(b' ');
            }
            shown.extend_from_slice(line.text);
            if line.whole {
                shown.push(b'\n');
            }
        }
        if let Some(left) = &mut self.left {
            shown.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= shown.len() as u64;
        }
        shown
    }
}

fn wanted(line: &Line<'_>, since: Option<Timestamp>) -> bool {
    let Some(since) = since else {
        return true;
    };
    line.time
        .parse::<Timestamp>()
        .is_ok_and(|time| time >= since)
}

/// Takes all that ends with a line from `rest`.
fn take_lines(rest: &mut Vec<u8>) -> Vec<u8> {
    let end = rest.iter().rposition(|&byte| byte == b'\n');
    let after = rest.split_off(end.map_or(0, |end| end + 1));
    std::mem::replace(rest, after)
}

/// The files of a log, the earlier one first.
fn files(log: &Log) -> io::Result<VecDeque<File>> {
    loop {
        let current = File::open(log.current())?;
        let Ok(earlier) = File::open(log.earlier()) else {
            return Ok([current].into());
        };
        // It became the earlier one between the two.
        if earlier.metadata()?.ino() != current.metadata()?.ino() {
            return Ok([earlier, current].into());
        }
    }
}

#[cfg(test)]
mod tests;
