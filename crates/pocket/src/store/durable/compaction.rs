//! A compaction in slices: each is short, so that writes wait for one slice at most.

use std::{sync::Arc, vec};

use super::key;
use crate::store::{
    Object,
    journal::{Error, Journal, Pieces, Record},
};

/// A slice writes and syncs about this much; less in tests, whose stores are small.
const SLICE: usize = if cfg!(test) { 1 << 9 } else { 1 << 17 };

/// An object and where it lives: resource, path.
type Place = (Arc<str>, Arc<str>, Arc<Object>);

/// A snapshot that is being written from the objects as they were when it began.
pub(super) struct Compacting {
    live: vec::IntoIter<Place>,
    pieces: Pieces,
}

impl Compacting {
    /// Begins a snapshot of `live`, all objects at `revision`.
    pub(super) fn begin(
        journal: &mut Journal,
        revision: u64,
        live: Vec<Place>,
    ) -> Result<Self, Error> {
        Ok(Self {
            live: live.into_iter(),
            pieces: journal.begin_compaction(revision)?.start()?,
        })
    }

    /// Writes a slice, or after the last one puts the snapshot in place and returns `None`.
    pub(super) fn step(mut self, journal: &mut Journal) -> Result<Option<Self>, Error> {
        let mut written = 0;
        while written < SLICE {
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
