//! What makes writes durable: the journal, and how it has done lately.

use std::time::{Duration, Instant};

use super::Compacting;
use crate::store::journal::{Error, Journal, Record};

/// A sync within this time may hold up whoever writes; a longer one is for the writer's thread,
/// since requests of others wait behind the one that is held up.
const QUICK: Duration = Duration::from_millis(1);

/// The journal and the compaction that is under way.
pub(in crate::store) struct Writer {
    pub(super) journal: Journal,
    pub(super) compacting: Option<Compacting>,
    quick: bool,
    /// Writes of the last batch: how many share a sync.
    crowd: usize,
}

impl Writer {
    pub(super) fn new(journal: Journal) -> Self {
        Self {
            journal,
            compacting: None,
            quick: true,
            crowd: 0,
        }
    }

    /// Whether a write may be committed by whoever asks for it.
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
        self.quick = begun.elapsed() <= QUICK;
        self.crowd = batch.len();
        appended
    }

    pub(super) fn close(self) -> Result<(), Error> {
        drop(self.compacting);
        self.journal.close()
    }
}
