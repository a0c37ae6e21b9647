//! The chain of logs after a snapshot, and how a torn write is told from damage.
//!
//! Each sealed log names its successor, so a log that was removed or truncated is detected. A log
//! may be unsealed with a successor only if a rotation was interrupted; the successor is empty
//! then, and is dropped.

use std::{ops::Range, sync::Arc};

use super::{
    Disk, Error,
    frame::{Frame, FrameKind, FrameState, any_header_after, is_blank},
    header::{FILE_HEADER, FileHeader},
    layout,
    log::{Log, LogEnd},
    record::RawRecord,
    recovery::LoadedFile,
    replay::Replay,
};

/// The logs after the snapshot, in order.
pub(super) struct Chain<'a> {
    links: Vec<Link<'a>>,
    /// The successor that an interrupted rotation left behind.
    pub(super) dropped: Option<String>,
}

/// One log of the chain, read to its end.
struct Link<'a> {
    file: &'a LoadedFile,
    header: FileHeader,
    /// The revision of its last record.
    last: u64,
    end: usize,
    /// The base of its successor.
    sealed: Option<u64>,
    torn: Option<Range<usize>>,
    last_frame: Option<Range<usize>>,
}

impl<'a> Chain<'a> {
    pub(super) fn read(
        disk: &dyn Disk,
        logs: &'a [LoadedFile],
        replay: &mut Replay<'a>,
    ) -> Result<Self, Error> {
        let mut chain = Self {
            links: Vec::with_capacity(logs.len()),
            dropped: None,
        };
        for (at, file) in logs.iter().enumerate() {
            if let Some(before) = chain.links.last() {
                let is_last = at + 1 == logs.len();
                match before.sealed {
                    None if is_last && file.is_unused() => {
                        chain.dropped = Some(file.name.clone());
                        break;
                    }
                    None => return Err(before.ends_early(disk)),
                    Some(next) if next != file.base => return Err(missing_log(disk, next)),
                    Some(_) => {}
                }
            }
            chain.links.push(Link::read(disk, file, replay)?);
        }
        match chain.links.last().and_then(|link| link.sealed) {
            Some(next) => Err(missing_log(disk, next)),
            None => Ok(chain),
        }
    }

    /// Makes what was read durable and the space after it blank, and opens the last log there.
    pub(super) fn repair(&self, disk: &Arc<dyn Disk>) -> Result<Log, Error> {
        let mut log = None;
        // The last frame may have been read from the page cache and never have reached the disk: a
        // killed process or a failed sync can leave it so. Writing it again, and only that, makes
        // it durable. When the last log is still empty, that frame is the seal before it.
        let first = self.links.iter().rposition(|l| l.last_frame.is_some());
        for link in &self.links[first.unwrap_or(self.links.len() - 1)..] {
            log = Some(link.repair(disk)?);
        }
        log.ok_or_else(|| missing_log(&**disk, 0))
    }

    /// Bytes in the logs before the last one.
    pub(super) fn sealed_bytes(&self) -> u64 {
        let sealed = self.links.iter().rev().skip(1);
        sealed.map(|link| link.end as u64).sum()
    }
}

fn missing_log(disk: &dyn Disk, base: u64) -> Error {
    Error::Missing {
        path: disk.path(&layout::log(base)),
        reason: "the log before it goes on there",
    }
}

impl<'a> Link<'a> {
    fn read(disk: &dyn Disk, file: &'a LoadedFile, replay: &mut Replay<'a>) -> Result<Self, Error> {
        let Some(header) = file.header().filter(|header| header.step > 0) else {
            let problem = "this is not the header of this log";
            return Err(Error::corrupt(disk, &file.name, 0, problem));
        };
        let len = file.bytes.len();
        if !len.is_multiple_of(header.step as usize) {
            let problem = "the file was cut off or added to by another program";
            return Err(Error::corrupt(disk, &file.name, len, problem));
        }
        let mut link = Self {
            file,
            header,
            last: header.base,
            end: FILE_HEADER,
            sealed: None,
            torn: None,
            last_frame: None,
        };
        while link.advance(disk, replay)? {}
        Ok(link)
    }

    /// Reads the next frame; false at the end.
    fn advance(&mut self, disk: &dyn Disk, replay: &mut Replay<'a>) -> Result<bool, Error> {
        let (bytes, start) = (&self.file.bytes[..], self.end);
        let corrupt = |problem| Err(Error::corrupt(disk, &self.file.name, start, problem));
        match FrameState::at(bytes, self.file.base, start) {
            FrameState::Blank if is_blank(&bytes[start..]) => return Ok(false),
            _ if self.sealed.is_some() => return corrupt("there is something after the log's end"),
            FrameState::Frame(frame) => {
                if let Err(problem) = self.take(frame, replay) {
                    return corrupt(problem);
                }
                self.end += frame.len();
                self.last_frame = Some(start..self.end);
                return Ok(true);
            }
            FrameState::CutOff => {
                return corrupt("the file ends inside a record that was written whole");
            }
            FrameState::NoPayload(end) if is_blank(&bytes[end..]) => self.torn = Some(start..end),
            FrameState::Blank | FrameState::NoHeader
                if !any_header_after(bytes, self.file.base, start) =>
            {
                let blank = bytes.iter().rev().take_while(|b| **b == 0).count();
                self.torn = Some(start..bytes.len() - blank);
            }
            _ => return corrupt("a record is damaged, and records after it are not"),
        }
        Ok(false)
    }

    fn take(&mut self, frame: Frame<'a>, replay: &mut Replay<'a>) -> Result<(), &'static str> {
        if frame.after != self.last {
            return Err("this record does not continue the history before it");
        }
        let mut payload = frame.payload;
        match frame.kind {
            FrameKind::Batch => {
                while !payload.is_empty() {
                    let record =
                        RawRecord::take(&mut payload).ok_or("a record does not fit its frame")?;
                    replay.apply(record);
                }
                self.last = frame.last;
            }
            FrameKind::Seal => self.sealed = Some(frame.last),
            FrameKind::Close => {}
            FrameKind::Objects | FrameKind::End => return Err("a log holds no part of a snapshot"),
        }
        Ok(())
    }

    fn ends_early(&self, disk: &dyn Disk) -> Error {
        let problem = "the log ends here, yet the next one holds later records";
        Error::corrupt(disk, &self.file.name, self.end, problem)
    }

    fn repair(&self, disk: &Arc<dyn Disk>) -> Result<Log, Error> {
        let end = LogEnd {
            last: self.last,
            end: self.end as u64,
            len: self.file.bytes.len() as u64,
        };
        let mut log = Log::resume(disk, self.header, end)?;
        if let Some(torn) = &self.torn {
            tracing::warn!(
                file = %disk.path(&self.file.name).display(),
                offset = torn.start,
                bytes = torn.len(),
                "dropping the last write of the log: it was cut short before it could be \
                 acknowledged, unless this disk damages what it holds"
            );
            log.write(torn.start as u64, &vec![0; torn.len()])?;
        }
        if let Some(frame) = &self.last_frame {
            log.write(frame.start as u64, &self.file.bytes[frame.clone()])?;
        }
        log.sync()?;
        Ok(log)
    }
}
