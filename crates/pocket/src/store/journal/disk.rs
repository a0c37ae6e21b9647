//! The file layer under the journal.
//!
//! A trait, so that a test may use a layer that loses whatever was not synced. The journal assumes
//! no more than this of a disk: bytes are durable once [`DiskFile::sync`] has returned, and names
//! once [`Disk::sync_folder`] has; before that, any part of them may or may not survive, and bytes
//! may read as noise. Durable bytes stay what they are while their neighbours are written, or while
//! they are written again with the same values: a sector holds its old or its new content.

use std::{fmt, io, path::PathBuf};

/// A flat folder of files.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// The path of the file called `name`, for messages; the folder itself for the empty name.
    fn path(&self, name: &str) -> PathBuf;
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// The whole content of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Creates an empty file, or truncates an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, replacing the file that had the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all creations, renames and removals durable.
    fn sync_folder(&self) -> io::Result<()>;
}

/// A file open for writing.
pub trait DiskFile: fmt::Debug + Send + 'static {
    /// Writes all of `bytes` at `offset`.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes the file this long; new bytes read as zero.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync(&mut self) -> io::Result<()>;
}
