//! Snapshots: all objects at one revision, in a file of their own.
//!
//! A snapshot gets its name only once it is complete and durable, so a named one that is invalid
//! was damaged later.

use std::sync::Arc;

use super::{
    Disk, DiskFile, Error, Record,
    frame::{FrameBuffer, FrameKind, FrameState, PAYLOAD_LIMIT},
    header::{FILE_HEADER, FileHeader, FileKind},
    layout,
    record::{RawRecord, record_len},
    recovery::LoadedFile,
    replay::Replay,
};

/// Approximate bytes of objects in one frame.
const PIECE_BYTES: usize = 256 * 1024;

/// A snapshot to be written, perhaps by another thread while the journal appends more batches.
#[derive(Debug)]
pub struct Compaction {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) revision: u64,
    pub(super) running: Arc<()>,
}

/// A snapshot that is durable but does not have its name yet.
#[derive(Debug)]
#[must_use = "it takes effect by `Journal::finish_compaction`"]
pub struct Snapshot {
    pub(super) revision: u64,
    pub(super) bytes: u64,
    _running: Arc<()>,
}

impl Compaction {
    /// The revision whose objects [`Compaction::write`] expects.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Writes all objects that exist at [`Compaction::revision`], in any order.
    pub fn write(self, live: &mut dyn Iterator<Item = Record>) -> Result<Snapshot, Error> {
        let mut pieces = self.start()?;
        for record in live {
            pieces.push(&record)?;
        }
        pieces.finish()
    }

    /// As [`Self::write`], in pieces, for a writer that appends batches in between.
    pub fn start(self) -> Result<Pieces, Error> {
        let writer = SnapshotWriter::create(self.disk.clone(), self.revision)?;
        let mut pieces = Pieces {
            compaction: self,
            writer,
            count: 0,
            finished: false,
        };
        pieces.writer.begin()?;
        Ok(pieces)
    }

    fn check(&self, record: &Record) -> Result<(), Error> {
        if record.revision > self.revision {
            return Err(Error::NotInSnapshot {
                revision: record.revision,
                snapshot: self.revision,
            });
        }
        match record_len(record) {
            bytes if bytes > PAYLOAD_LIMIT => Err(Error::TooLarge {
                bytes,
                limit: PAYLOAD_LIMIT,
            }),
            _ => Ok(()),
        }
    }
}

/// A snapshot that is being written. One that is dropped unfinished removes its file; if that
/// fails, the next start does.
#[derive(Debug)]
pub struct Pieces {
    compaction: Compaction,
    writer: SnapshotWriter,
    count: u64,
    finished: bool,
}

impl Pieces {
    /// Adds an object; a deleted one is skipped.
    pub fn push(&mut self, record: &Record) -> Result<(), Error> {
        if record.value.is_some() {
            self.compaction.check(record)?;
            self.writer.push(record)?;
            self.count += 1;
        }
        Ok(())
    }

    /// Makes what was added so far durable, so that less is left to do at the end.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.writer.sync()
    }

    /// Completes the snapshot and makes it durable.
    pub fn finish(mut self) -> Result<Snapshot, Error> {
        let bytes = self.writer.finish(self.count)?;
        self.finished = true;
        Ok(Snapshot {
            revision: self.compaction.revision,
            bytes,
            _running: self.compaction.running.clone(),
        })
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.compaction.disk.remove(&self.writer.name);
        }
    }
}

#[derive(Debug)]
struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    name: String,
    file: Box<dyn DiskFile>,
    base: u64,
    end: u64,
    buffer: FrameBuffer,
}

impl SnapshotWriter {
    fn create(disk: Arc<dyn Disk>, base: u64) -> Result<Self, Error> {
        let name = layout::new_snapshot(base);
        let file = disk
            .create(&name)
            .map_err(Error::io(&*disk, "create", &name))?;
        let mut buffer = FrameBuffer::default();
        buffer.clear();
        Ok(Self {
            disk,
            name,
            file,
            base,
            end: 0,
            buffer,
        })
    }

    fn begin(&mut self) -> Result<(), Error> {
        let header = FileHeader {
            kind: FileKind::Snapshot,
            step: 0,
            base: self.base,
        };
        self.write(&header.encode())
    }

    fn push(&mut self, record: &Record) -> Result<(), Error> {
        if self.buffer.payload_len() + record_len(record) > PIECE_BYTES {
            self.flush(FrameKind::Objects, 0)?;
        }
        self.buffer.push(record);
        Ok(())
    }

    fn finish(&mut self, count: u64) -> Result<u64, Error> {
        self.flush(FrameKind::Objects, 0)?;
        self.flush(FrameKind::End, count)?;
        self.sync()?;
        Ok(self.end)
    }

    fn sync(&mut self) -> Result<(), Error> {
        let synced = self.file.sync();
        synced.map_err(Error::io(&*self.disk, "sync", &self.name))
    }

    fn flush(&mut self, kind: FrameKind, after: u64) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(buffer.finish(self.base, self.end, kind, after, self.base))?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_at(self.end, bytes)
            .map_err(Error::io(&*self.disk, "write", &self.name))?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// Loads the objects of a snapshot into `replay`.
pub(super) fn read<'a>(
    disk: &dyn Disk,
    file: &'a LoadedFile,
    replay: &mut Replay<'a>,
) -> Result<(), Error> {
    let corrupt = |offset, problem| Error::corrupt(disk, &file.name, offset, problem);
    let header = FileHeader::decode(FileKind::Snapshot, &file.bytes);
    if header.is_none_or(|header| header.base != file.base) {
        return Err(corrupt(0, "this is not the header of this snapshot"));
    }
    let (mut offset, mut count) = (FILE_HEADER, 0);
    loop {
        let FrameState::Frame(frame) = FrameState::at(&file.bytes, file.base, offset) else {
            return Err(corrupt(offset, "the objects here are damaged or cut off"));
        };
        let end = offset + frame.len();
        match frame.kind {
            FrameKind::Objects => {
                let mut payload = frame.payload;
                while !payload.is_empty() {
                    let record = RawRecord::take(&mut payload)
                        .ok_or_else(|| corrupt(offset, "an object does not fit its frame"))?;
                    replay.restore(record);
                    count += 1;
                }
            }
            FrameKind::End if frame.after == count && end == file.bytes.len() => return Ok(()),
            _ => {
                return Err(corrupt(
                    offset,
                    "the snapshot does not end as it was written",
                ));
            }
        }
        offset = end;
    }
}
