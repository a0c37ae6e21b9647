//! The writer: the journal, and its recent performance.

use std::time::{Duration, Instant};

use super::Compacting;
use crate::store::journal::{Error, Journal, Record};

/// The longest sync that may block a requesting task; with a slower disk the writer thread commits,
/// since other requests would wait behind the blocked one.
const FAST_SYNC: Duration = Duration::from_millis(1);

/// The journal and the running compaction.
pub(in crate::store) struct JournalWriter {
    pub(super) journal: Journal,
    pub(super) compacting: Option<Compacting>,
    quick: bool,
    /// Writes of the last batch: how many shared a sync.
    crowd: usize,
}

impl JournalWriter {
    pub(super) fn new(journal: Journal) -> Self {
        Self {
            journal,
            compacting: None,
            quick: true,
            crowd: 0,
        }
    }

    /// Whether the requesting task may commit its own write.
    pub(super) fn suits_a_lone_write(&self) -> bool {
        self.quick && self.crowd <= 1 && self.compacting.is_none()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the pace of the disk, which no clock of a test may change"
    )]
    pub(super) fn append(&mut self, batch: &[Record]) -> Result<(), Error> {
        let begun = Instant::now();
        let appended = self.journal.append(batch);
        self.quick = begun.elapsed() <= FAST_SYNC;
        self.crowd = batch.len();
        appended
    }

    pub(super) fn close(self) -> Result<(), Error> {
        drop(self.compacting);
        self.journal.close()
    }
}
