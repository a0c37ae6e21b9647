//! Compaction in slices: each is short, so that writes wait for one slice at most.

use std::vec;

use super::key;
use crate::store::{
    LocatedObject,
    journal::{Error, Journal, Pieces, Record},
};

/// Bytes that a slice writes and syncs; less in tests, whose stores are small.
const SLICE_BYTES: usize = if cfg!(test) { 1 << 9 } else { 1 << 17 };

/// A snapshot that is being written, of the objects as they were when it began.
pub(super) struct Compacting {
    live: vec::IntoIter<LocatedObject>,
    pieces: Pieces,
}

impl Compacting {
    /// Begins a snapshot of `live`, all objects at `revision`.
    pub(super) fn begin(
        journal: &mut Journal,
        revision: u64,
        live: Vec<LocatedObject>,
    ) -> Result<Self, Error> {
        Ok(Self {
            live: live.into_iter(),
            pieces: journal.begin_compaction(revision)?.start()?,
        })
    }

    /// Writes a slice; after the last one it completes the snapshot and returns `None`.
    pub(super) fn step(mut self, journal: &mut Journal) -> Result<Option<Self>, Error> {
        let mut written = 0;
        while written < SLICE_BYTES {
            let Some((resource, path, object)) = self.live.next() else {
                journal.finish_compaction(self.pieces.finish()?)?;
                return Ok(None);
            };
            let json = object.json();
            written += json.len();
            self.pieces.push(&Record {
                revision: object.revision(),
                key: key(&resource, &path),
                value: Some(json.clone()),
            })?;
        }
        self.pieces.sync()?;
        Ok(Some(self))
    }
}
