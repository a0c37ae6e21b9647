//! Storage of timelines.

use std::{collections::HashMap, future::Future};

use parking_lot::Mutex;

use super::Timeline;
use crate::why::{Code, Coded};

/// The version in which a timeline was read; a write requires that it is still the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineVersion(pub String);

/// A timeline as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTimeline {
    /// The progress of the operation.
    pub timeline: Timeline,
    /// The version in which it was read.
    pub version: TimelineVersion,
    /// The unique identity of the operation, which differs from that of an earlier one of its name.
    pub identity: String,
}

/// Why a timeline could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It was changed since it was read; read it again.
    #[error("the operation was changed since it was read")]
    Conflict,
    /// The operation does not exist.
    #[error("there is no such operation")]
    Missing,
    /// The journal itself failed.
    #[error("the journal of operations could not be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Stores timelines: durable when a call returns, and written only in the version that was read.
pub trait Journal: Send + Sync {
    /// The timeline of operation `id`.
    fn load(&self, id: &str) -> impl Future<Output = Result<StoredTimeline, JournalError>> + Send;

    /// Replaces the timeline of operation `id`.
    fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> impl Future<Output = Result<TimelineVersion, JournalError>> + Send;
}

/// A journal in memory, which lasts as long as the process.
#[derive(Debug, Default)]
pub struct InMemoryJournal(Mutex<HashMap<String, (Timeline, u64)>>);

impl InMemoryJournal {
    /// Adds an operation that has not started, unless it exists.
    pub fn add(&self, id: &str) {
        self.0.lock().entry(id.to_owned()).or_default();
    }
}

impl Journal for InMemoryJournal {
    async fn load(&self, id: &str) -> Result<StoredTimeline, JournalError> {
        let timelines = self.0.lock();
        let (timeline, version) = timelines.get(id).ok_or(JournalError::Missing)?;
        Ok(StoredTimeline {
            timeline: timeline.clone(),
            version: TimelineVersion(version.to_string()),
            // Operations are never removed, so the id is unique.
            identity: id.to_owned(),
        })
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> Result<TimelineVersion, JournalError> {
        let mut timelines = self.0.lock();
        let (old, version) = timelines.get_mut(id).ok_or(JournalError::Missing)?;
        if version.to_string() != seen.0 {
            return Err(JournalError::Conflict);
        }
        *version += 1;
        *old = timeline.clone();
        Ok(TimelineVersion(version.to_string()))
    }
}

impl Coded for JournalError {
    fn code(&self) -> Code {
        match self {
            Self::Conflict => Code("NT-KIT-004"),
            Self::Missing => Code("NT-KIT-017"),
            Self::Unreachable(_) => Code("NT-KIT-016"),
        }
    }
}
