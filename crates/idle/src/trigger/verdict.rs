//! Whether a service is in use, as far as its triggers can tell.

use std::fmt;

use futures::future::BoxFuture;
use neap_kit::{controller::Enqueuer, key::Key};

use crate::{api::ElastiService, reason::Reason};

/// What the triggers of a service report together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The service is not in use and may sleep now.
    Idle(Reason),
    /// The service is in use, or may not sleep at this time.
    Busy(Reason),
    /// At least one trigger has no usable answer. The service neither sleeps nor wakes because of it.
    Unknown(Reason),
}

impl Verdict {
    /// Why.
    pub fn reason(&self) -> &Reason {
        let (Self::Idle(reason) | Self::Busy(reason) | Self::Unknown(reason)) = self;
        reason
    }
}

/// The source of verdicts.
pub trait Verdicts: fmt::Debug + Send + Sync {
    /// The verdict of the last poll, from memory.
    fn latest(&self, service: &ElastiService) -> Verdict;

    /// Polls the triggers now: a request may have arrived between the last poll and the last step before
    /// sleep.
    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict>;

    /// Registers an enqueuer that receives the key of a service whenever its verdict changes.
    fn enqueue_changes(&self, enqueuer: Enqueuer<Key>);
}
