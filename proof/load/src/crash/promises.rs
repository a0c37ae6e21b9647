//! What all writers together were promised since the last check.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Result, ensure};
use parking_lot::Mutex;

use crate::objects::Resource;

/// Shared by all writers.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// The newest acknowledged revision.
    highest: AtomicU64,
    /// Every acknowledged revision ever: none is assigned twice.
    given: Mutex<HashSet<u64>>,
    /// Revisions acknowledged since the last check.
    recent: Mutex<Vec<(Resource, u64)>>,
    /// All acknowledged writes, including deletes.
    acknowledged: AtomicU64,
    /// Increments of the shared counter that were acknowledged, and those that may have happened.
    increments: AtomicU64,
    doubtful: AtomicU64,
}

impl Promises {
    pub(super) fn highest(&self) -> u64 {
        self.highest.load(Ordering::SeqCst)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Records an acknowledged write that was sent when `floor` was the newest revision.
    pub(super) fn acknowledge(&self, resource: Resource, revision: u64, floor: u64) -> Result<()> {
        ensure!(
            revision > floor,
            "revision {revision} was given after {floor}"
        );
        ensure!(
            self.given.lock().insert(revision),
            "revision {revision} was given twice"
        );
        self.highest.fetch_max(revision, Ordering::SeqCst);
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.recent.lock().push((resource, revision));
        Ok(())
    }

    /// Records an acknowledged delete; its answer has no revision.
    pub(super) fn acknowledge_delete(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_increment(&self, answered: bool) {
        let count = if answered {
            &self.increments
        } else {
            &self.doubtful
        };
        count.fetch_add(1, Ordering::SeqCst);
    }

    /// Checks that the counter has every acknowledged increment, and none that was not sent.
    pub(super) fn check_counter(&self, counter: u64) -> Result<()> {
        let sure = self.increments.load(Ordering::SeqCst);
        let most = sure + self.doubtful.load(Ordering::SeqCst);
        ensure!(
            (sure..=most).contains(&counter),
            "the counter is {counter}, but {sure} increments were acknowledged and {most} sent"
        );
        Ok(())
    }

    /// The revisions acknowledged since the last call.
    pub(super) fn take_recent(&self) -> Vec<(Resource, u64)> {
        std::mem::take(&mut self.recent.lock())
    }
}
