//! Whether anybody asks for a service, as far as its triggers can tell.

use std::fmt;

use futures::future::BoxFuture;
use jiff::Timestamp;
use neap_kit::{controller::Trigger, key::Key};

use crate::api::ElastiService;

/// Why something is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    /// In one word that is part of the API.
    pub reason: &'static str,
    /// In a sentence for people.
    pub sentence: String,
    /// When somebody last asked, where that is known to the second.
    pub asked: Option<Timestamp>,
}

impl Because {
    /// A reason in a word and in a sentence.
    pub fn new(reason: &'static str, sentence: impl Into<String>) -> Self {
        Self {
            reason,
            sentence: sentence.into(),
            asked: None,
        }
    }

    /// The same of a service that was last asked for then.
    #[must_use]
    pub fn last_asked(mut self, asked: Timestamp) -> Self {
        self.asked = Some(asked);
        self
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// What the triggers say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody asks for it, and it may sleep now.
    Idle(Because),
    /// Somebody does, or it is not the time to sleep.
    Busy(Because),
    /// Nobody can say. That puts nothing to sleep and wakes nothing.
    Unknown(Because),
}

impl Verdict {
    /// Why.
    pub fn because(&self) -> &Because {
        let (Self::Idle(because) | Self::Busy(because) | Self::Unknown(because)) = self;
        because
    }
}

/// Who knows what the triggers say.
pub trait Verdicts: fmt::Debug + Send + Sync {
    /// What they said last, at hand.
    fn of(&self, service: &ElastiService) -> Verdict;

    /// Asks them now. Between the first look and the last step before sleep somebody may have come.
    fn anew<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict>;

    /// Has `trigger` look at a service whenever they say something else.
    fn tell(&self, trigger: Trigger<Key>);
}
