//! Timelines of operations in the store, written under the lease of the cluster.

use neap_kit::operation::{
    Cause, Journal, JournalError, StoredTimeline, Timeline, TimelineVersion,
};
use neap_kit::why::Code;
use neap_store::{Commit, DocumentKey, Error, Etag, Lease, Precondition, Scope, Store, Write};
use serde_json::{Value, json};

use crate::{
    cloud_error::CustomerError,
    documents::{OPERATIONS, TIMELINES, subscription_document, text},
};

/// The member with the error that customers are told.
const TOLD: &str = "customerError";

/// Timelines in the store. The lease and the timeline are rows of their own, so that a renewal does not
/// write the timeline and a step does not write the cluster.
#[derive(Debug)]
pub struct StoreJournal {
    store: Store,
    lease: Lease,
    cluster: String,
    work: &'static str,
    total: usize,
    told: CustomerError,
}

impl StoreJournal {
    /// The journal of the operation on the cluster of `lease`.
    pub fn new(
        store: Store,
        lease: Lease,
        cluster: &str,
        work: &'static str,
        total: usize,
    ) -> Self {
        Self {
            store,
            lease,
            cluster: cluster.to_owned(),
            work,
            total,
            told: CustomerError::default(),
        }
    }

    /// The same journal, which keeps what customers are told with the timeline.
    pub fn telling(mut self, told: CustomerError) -> Self {
        self.told = told;
        self
    }

    fn key(&self, id: &str) -> DocumentKey {
        subscription_document(TIMELINES, self.lease.key.partition.name(), id)
    }

    /// Why the operation was cancelled, if it was.
    async fn cancelled(&self, id: &str) -> Result<Option<Cause>, JournalError> {
        let key = subscription_document(OPERATIONS, self.lease.key.partition.name(), id);
        let found = self.store.get(Scope::Partition(&key.partition), &key).await;
        let found = found.map_err(unreachable)?;
        let reason = found.and_then(|it| {
            let reason = text(&it.body, "/cancelRequested").to_owned();
            (!reason.is_empty()).then_some(reason)
        });
        Ok(reason.map(|reason| Cause::coded(Code("NT-KIT-005"), reason)))
    }
}

fn unreachable(error: Error) -> JournalError {
    match error {
        Error::Conflict(_) | Error::Exists(_) | Error::Missing(_) => JournalError::Conflict,
        error => JournalError::Unreachable(error.into()),
    }
}

/// The timeline in a document.
fn timeline(document: &Value) -> Timeline {
    serde_json::from_value(document["timeline"].clone()).unwrap_or_default()
}

impl Journal for StoreJournal {
    async fn load(&self, id: &str) -> Result<StoredTimeline, JournalError> {
        let key = self.key(id);
        let found = self.store.get(Scope::Partition(&key.partition), &key).await;
        let found = found.map_err(unreachable)?;
        let (mut timeline, version) = found.map_or_else(
            || (Timeline::default(), String::new()),
            |document| {
                self.told.read(&document.body[TOLD]);
                (timeline(&document.body), document.etag.0.to_string())
            },
        );
        if let Some(cause) = self.cancelled(id).await? {
            timeline.cancel(cause);
        }
        Ok(StoredTimeline {
            timeline,
            version: TimelineVersion(version),
            identity: id.to_owned(),
        })
    }

    async fn save(
        &self,
        id: &str,
        timeline: &Timeline,
        seen: &TimelineVersion,
    ) -> Result<TimelineVersion, JournalError> {
        let precondition = match seen.0.parse() {
            Ok(etag) => Precondition::Etag(Etag(etag)),
            Err(_) => Precondition::Absent,
        };
        let last = timeline.steps.last();
        let body = json!({
            "id": id,
            "openShiftClusterKey": self.cluster,
            "work": self.work,
            "total": self.total,
            "timeline": timeline,
            (TOLD): self.told.stored(),
        });
        let commit = Commit::default()
            .with(Write::Fence {
                lease: self.lease.clone(),
                // A step that ended is progress: the claims are counted anew.
                progress: last.is_some_and(|step| step.ended.is_some()),
            })
            .put(self.key(id), precondition, body);
        let etags = self.store.commit(commit).await.map_err(unreachable)?;
        let etag = etags.first().map(|etag| etag.0.to_string());
        Ok(TimelineVersion(etag.unwrap_or_default()))
    }
}
