//! Snapshots: all objects at one revision, in a file of their own.
//!
//! A snapshot gets its name only once it is whole and durable, so one that has a name and is not
//! sound was damaged later.

use std::sync::Arc;

use super::{
    Disk, DiskFile, Error, Record,
    frame::{FrameBuffer, FrameKind, PAYLOAD_LIMIT, Place},
    header::{FILE_HEADER, FileHeader, FileKind},
    layout,
    record::{RawRecord, record_len},
    recovery::LoadedFile,
    replay::Replay,
};

/// Objects are written in pieces of about this size.
const PIECE: usize = 256 * 1024;

/// A snapshot to be written, perhaps by another thread while the journal takes more batches.
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
        let name = layout::new_snapshot(self.revision);
        match self.try_write(&name, live) {
            Ok(bytes) => Ok(Snapshot {
                revision: self.revision,
                bytes,
                _running: self.running,
            }),
            Err(error) => {
                // Gives the space back; failing at it, the next start does.
                let _ = self.disk.remove(&name);
                Err(error)
            }
        }
    }

    fn try_write(&self, name: &str, live: &mut dyn Iterator<Item = Record>) -> Result<u64, Error> {
        let mut writer = Writer::create(&*self.disk, name, self.revision)?;
        let mut count = 0;
        for record in live.filter(|record| record.value.is_some()) {
            self.check(&record)?;
            writer.push(&record)?;
            count += 1;
        }
        writer.finish(count)
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

#[derive(Debug)]
struct Writer<'a> {
    disk: &'a dyn Disk,
    name: &'a str,
    file: Box<dyn DiskFile>,
    base: u64,
    end: u64,
    buffer: FrameBuffer,
}

impl<'a> Writer<'a> {
    fn create(disk: &'a dyn Disk, name: &'a str, base: u64) -> Result<Self, Error> {
        let file = disk.create(name).map_err(Error::io(disk, "create", name))?;
        let mut buffer = FrameBuffer::default();
        buffer.clear();
        let mut writer = Self {
            disk,
            name,
            file,
            base,
            end: 0,
            buffer,
        };
        let header = FileHeader {
            kind: FileKind::Snapshot,
            step: 0,
            base,
        };
        writer.write(&header.encode())?;
        Ok(writer)
    }

    fn push(&mut self, record: &Record) -> Result<(), Error> {
        if self.buffer.payload_len() + record_len(record) > PIECE {
            self.flush(FrameKind::Objects, 0)?;
        }
        self.buffer.push(record);
        Ok(())
    }

    fn finish(mut self, count: u64) -> Result<u64, Error> {
        self.flush(FrameKind::Objects, 0)?;
        self.flush(FrameKind::End, count)?;
        self.file
            .sync()
            .map_err(Error::io(self.disk, "sync", self.name))?;
        Ok(self.end)
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
            .map_err(Error::io(self.disk, "write", self.name))?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// Puts the objects of a snapshot into `replay`.
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
        let Place::Frame(frame) = Place::at(&file.bytes, file.base, offset) else {
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
