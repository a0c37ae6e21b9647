//! The log that is being written.
//!
//! Its file grows by whole steps, and each step is durable before anything is written into it. So a
//! commit costs one write and one sync that need not change the file's length, and a file whose
//! length is no multiple of the step, or that ends inside a frame, was truncated by another
//! program.

use std::{io, sync::Arc};

use super::{
    Disk, DiskFile, Error, Record,
    frame::{FrameBuffer, FrameKind},
    header::{FILE_HEADER, FileHeader, FileKind},
    layout,
};

#[derive(Debug)]
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    name: String,
    file: Box<dyn DiskFile>,
    header: FileHeader,
    /// The revision of the last record.
    last: u64,
    /// The offset of the next frame.
    end: u64,
    /// Length of the file.
    len: u64,
    buffer: FrameBuffer,
}

/// Where a recovered log ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogEnd {
    pub(super) last: u64,
    pub(super) end: u64,
    pub(super) len: u64,
}

impl Log {
    /// Creates an empty log for the records after revision `base`. Durable when it returns.
    pub(super) fn create(disk: &Arc<dyn Disk>, base: u64, step: u32) -> Result<Self, Error> {
        let name = layout::log(base);
        let header = FileHeader {
            kind: FileKind::Log,
            step,
            base,
        };
        let file = disk
            .create(&name)
            .map_err(Error::io(&**disk, "create", &name))?;
        let end = LogEnd {
            last: base,
            end: FILE_HEADER as u64,
            len: 0,
        };
        let mut log = Self::new(disk, file, header, end);
        log.grow_to(log.end)?;
        log.write(0, &header.encode())?;
        log.sync()?;
        disk.sync_folder().map_err(Error::io(&**disk, "sync", ""))?;
        Ok(log)
    }

    /// Removes a log that could not be created completely, if there is any of it.
    pub(super) fn discard(disk: &dyn Disk, base: u64) -> Result<(), Error> {
        let name = layout::log(base);
        match disk.remove(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io(disk, "remove", &name)),
        }
    }

    /// Opens a log that was read up to `end`.
    pub(super) fn resume(
        disk: &Arc<dyn Disk>,
        header: FileHeader,
        end: LogEnd,
    ) -> Result<Self, Error> {
        let name = layout::log(header.base);
        let file = disk
            .open(&name)
            .map_err(Error::io(&**disk, "open", &name))?;
        Ok(Self::new(disk, file, header, end))
    }

    fn new(disk: &Arc<dyn Disk>, file: Box<dyn DiskFile>, header: FileHeader, end: LogEnd) -> Self {
        Self {
            disk: disk.clone(),
            name: layout::log(header.base),
            file,
            header,
            last: end.last,
            end: end.end,
            len: end.len,
            buffer: FrameBuffer::default(),
        }
    }

    pub(super) fn base(&self) -> u64 {
        self.header.base
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Appends the records as one frame. Durable when it returns.
    pub(super) fn append(&mut self, batch: &[Record]) -> Result<(), Error> {
        self.buffer.clear();
        for record in batch {
            self.buffer.push(record);
        }
        let last = batch.last().map_or(self.last, |record| record.revision);
        self.commit(FrameKind::Batch, last)
    }

    /// Ends this log: history continues in the log after revision `next`.
    pub(super) fn seal(&mut self, next: u64) -> Result<(), Error> {
        self.buffer.clear();
        self.commit(FrameKind::Seal, next)
    }

    /// Records that everything before is durable; see [`super::Journal::close`].
    pub(super) fn write_close(&mut self) -> Result<(), Error> {
        self.buffer.clear();
        self.commit(FrameKind::Close, self.last)
    }

    fn commit(&mut self, kind: FrameKind, last: u64) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let frame = buffer.finish(self.base(), self.end, kind, self.last, last);
        let end = self.end + frame.len() as u64;
        self.grow_to(end)?;
        self.write(self.end, frame)?;
        self.sync()?;
        self.buffer = buffer;
        self.end = end;
        self.last = last;
        Ok(())
    }

    fn grow_to(&mut self, end: u64) -> Result<(), Error> {
        if end <= self.len {
            return Ok(());
        }
        let len = end.next_multiple_of(u64::from(self.header.step));
        self.file
            .set_len(len)
            .map_err(Error::io(&*self.disk, "grow", &self.name))?;
        self.sync()?;
        self.len = len;
        Ok(())
    }

    /// Writes bytes in place; [`Log::sync`] makes them durable.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_at(offset, bytes)
            .map_err(Error::io(&*self.disk, "write", &self.name))
    }

    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.file
            .sync()
            .map_err(Error::io(&*self.disk, "sync", &self.name))
    }
}
