//! Reads the log of a container, and follows it.

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

use crate::node::process::{ContainerLog, LogLine};

/// The size of the chunks in which a log is read and sent.
const CHUNK_BYTES: usize = 64 << 10;

/// The options of a log request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container.
    pub container: String,
    /// Follow the log until the container ends.
    pub follow: bool,
    /// Read the log of the previous process.
    pub previous: bool,
    /// The number of lines from the end.
    pub tail: Option<u64>,
    /// The time of the first line.
    pub since: Option<Timestamp>,
    /// Whether each line begins with its time.
    pub timestamps: bool,
    /// The maximum number of bytes.
    pub limit: Option<u64>,
}

/// Reads a log from its files. With `printed` it continues whenever that changes, until it closes.
pub fn read(
    log: &ContainerLog,
    options: &LogOptions,
    printed: Option<watch::Receiver<u64>>,
) -> io::Result<BoxStream<'static, Bytes>> {
    let reader = LogReader::open(log, options, printed.clone())?;
    let chunks = stream::unfold((reader, printed), |(reader, mut printed)| async move {
        let mut reader = reader;
        loop {
            let is_last = match &mut printed {
                // Output after this point changes the channel again.
                Some(printed) => {
                    printed.has_changed().is_err() || {
                        printed.mark_unchanged();
                        false
                    }
                }
                None => true,
            };
            let read = move || {
                let chunk = reader.next_chunk();
                (reader, chunk)
            };
            let (back, chunk) = tokio::task::spawn_blocking(read).await.ok()?;
            reader = back;
            match chunk {
                Ok(Some(chunk)) => return Some((chunk, (reader, printed))),
                Ok(None) if reader.left == Some(0) || is_last => return None,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a log cannot be read any further");
                    return None;
                }
            }
            // Closed if the process writes no more; then the files are read once more.
            let _ = printed.as_mut()?.changed().await;
        }
    });
    Ok(chunks.boxed())
}

/// The state of reading a log.
struct LogReader {
    log: ContainerLog,
    /// Open while the log is that of the same process.
    printed: Option<watch::Receiver<u64>>,
    /// The file that is read, and those after it.
    files: VecDeque<File>,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
    /// The number of lines to skip.
    skip: u64,
    since: Option<Timestamp>,
    timestamps: bool,
    left: Option<u64>,
    /// Whether the next chunk begins a line.
    at_start: bool,
}

impl LogReader {
    fn open(
        log: &ContainerLog,
        options: &LogOptions,
        printed: Option<watch::Receiver<u64>>,
    ) -> io::Result<Self> {
        let mut reader = Self {
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
            reader.skip = reader.count()?.saturating_sub(tail);
        }
        Ok(reader)
    }

    /// The number of lines that match the options.
    fn count(&mut self) -> io::Result<u64> {
        let (mut count, mut is_open) = (0, false);
        let mut rest = Vec::new();
        for file in &mut self.files {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let read = file.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                rest.extend_from_slice(&buffer[..read]);
                for line in take_lines(&mut rest).split(|&byte| byte == b'\n') {
                    if let Some(line) = LogLine::read(line).filter(|line| wanted(line, self.since))
                    {
                        count += u64::from(!is_open);
                        is_open = !line.whole;
                    }
                }
            }
            file.rewind()?;
        }
        Ok(count)
    }

    /// The next chunk that matches the options; none if there is no more now.
    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.left != Some(0) {
            let Some(file) = self.files.front_mut() else {
                return Ok(None);
            };
            let read = file.read(&mut buffer)?;
            if read == 0 {
                if self.files.len() > 1 {
                    self.files.pop_front();
                } else if !self.open_rotated()? {
                    return Ok(None);
                }
                continue;
            }
            self.rest.extend_from_slice(&buffer[..read]);
            let shown = self.format_lines();
            if !shown.is_empty() {
                return Ok(Some(shown.into()));
            }
        }
        Ok(None)
    }

    /// Whether another file follows. If the log was rotated more than once since the last read, the
    /// output in between is lost, but not what comes after.
    fn open_rotated(&mut self) -> io::Result<bool> {
        let Some(file) = self.files.back() else {
            return Ok(false);
        };
        let own = file.metadata()?.ino();
        let mut next = match files(&self.log) {
            // It is being rotated at this moment; the channel changes when that is done.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            next => next?,
        };
        let inodes = next.iter().map(|file| Ok(file.metadata()?.ino()));
        let inodes: Vec<u64> = inodes.collect::<io::Result<_>>()?;
        match inodes.iter().position(|&inode| inode == own) {
            Some(at) => drop(next.drain(..=at)),
            // They may be those of another process, which starts after this one has ended.
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

    fn format_lines(&mut self) -> Vec<u8> {
        let lines = take_lines(&mut self.rest);
        let mut shown = Vec::with_capacity(lines.len());
        for line in lines.split(|&byte| byte == b'\n') {
            let line = LogLine::read(line).filter(|line| wanted(line, self.since));
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

fn wanted(line: &LogLine<'_>, since: Option<Timestamp>) -> bool {
    let Some(since) = since else {
        return true;
    };
    line.time
        .parse::<Timestamp>()
        .is_ok_and(|time| time >= since)
}

/// Takes all complete lines from `rest`.
fn take_lines(rest: &mut Vec<u8>) -> Vec<u8> {
    let end = rest.iter().rposition(|&byte| byte == b'\n');
    let after = rest.split_off(end.map_or(0, |end| end + 1));
    std::mem::replace(rest, after)
}

/// The files of a log, the earlier one first.
fn files(log: &ContainerLog) -> io::Result<VecDeque<File>> {
    loop {
        let current = File::open(log.current())?;
        let Ok(earlier) = File::open(log.earlier()) else {
            return Ok([current].into());
        };
        // It was rotated between the two opens.
        if earlier.metadata()?.ino() != current.metadata()?.ino() {
            return Ok([earlier, current].into());
        }
    }
}

#[cfg(test)]
mod tests;
