//! Where timelines are kept.

use std::{collections::HashMap, future::Future};

use parking_lot::Mutex;

use super::Timeline;
use crate::why::{Code, Coded};

/// The state in which a timeline was read; a write needs that it is still the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(pub String);

/// A timeline as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What became of the operation so far.
    pub timeline: Timeline,
    /// The state in which it was read.
    pub version: Version,
    /// Unlike that of every other operation, also of one that had the same name before.
    pub identity: String,
}

/// Why a timeline could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else has written it since; whoever reads it again sees what happened.
    #[error("the operation was changed by somebody else")]
    Conflict,
    /// There is no such operation, or no longer.
    #[error("there is no such operation")]
    Missing,
    /// The journal itself failed.
    #[error("the journal of operations could not be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Keeps timelines: durable when a call returns, and written only in the state that was read.
pub trait Journal: Send + Sync {
    /// The timeline of operation `id`.
    fn load(&self, id: &str) -> impl Future<Output = Result<Kept, JournalError>> + Send;

    /// Replaces the timeline of operation `id`.
    fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &Version,
    ) -> impl Future<Output = Result<Version, JournalError>> + Send;
}

/// Timelines that last as long as the process.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<HashMap<String, (Timeline, u64)>>);

impl InMemory {
    /// Adds an operation to which nothing has happened yet, unless it is there.
    pub fn add(&self, id: &str) {
        self.0.lock().entry(id.to_owned()).or_default();
    }
}

impl Journal for InMemory {
    async fn load(&self, id: &str) -> Result<Kept, JournalError> {
        let kept = self.0.lock();
        let (timeline, version) = kept.get(id).ok_or(JournalError::Missing)?;
        Ok(Kept {
            timeline: timeline.clone(),
            version: Version(version.to_string()),
            // Operations are added, and never taken away.
            identity: id.to_owned(),
        })
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &Version,
    ) -> Result<Version, JournalError> {
        let mut kept = self.0.lock();
        let (old, version) = kept.get_mut(id).ok_or(JournalError::Missing)?;
        if version.to_string() != seen.0 {
            return Err(JournalError::Conflict);
        }
        *version += 1;
        *old = timeline.clone();
        Ok(Version(version.to_string()))
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
