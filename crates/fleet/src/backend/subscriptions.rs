//! The deletion of a subscription: all its clusters are deleted.

use std::time::Duration;

use neap_kit::why::chain;
use neap_store::{
    AuditRow, Claimed, Commit, Document, Error, Lease, ListRequest, Partition, Precondition,
    QueueChange, Scope, Write,
};

use super::Backend;
use crate::{
    cluster::{Request, queue_deletion, states},
    documents::{CLUSTERS, OPERATIONS, QUEUE, subscription_document, text, unique_keys},
};

/// When a subscription is looked at again whose clusters are busy, or whose workers ended, in milliseconds.
const RETRY_LATER: i64 = 60_000;
/// The number of clusters that are read at once.
const PAGE: usize = 50;

impl Backend {
    /// `claimed_at` is when the call that claimed the document was sent.
    pub(super) async fn work_on_subscription(&self, claimed: Claimed, claimed_at: Duration) {
        let id = claimed.document.key.id.clone();
        let ended = if claimed.lease.dequeues > self.0.options.max_dequeues {
            // Others have their turn before the next one tries.
            tracing::warn!(
                subscription = id,
                claims = claimed.lease.dequeues,
                "the deletion of the subscription is put off: its workers end before they are done"
            );
            self.look_later(&claimed.lease).await
        } else {
            match self.queue_deletions(&claimed, claimed_at).await {
                Ok(true) => self.finish_subscription(&claimed).await,
                Ok(false) => self.look_later(&claimed.lease).await,
                Err(error) => Err(error),
            }
        };
        if let Err(error) = ended {
            let why = chain(&error);
            tracing::warn!(
                subscription = id,
                why,
                "the subscription is looked at again later"
            );
        }
    }

    /// Leaves the subscription to any worker after a while, as if it had not been claimed yet.
    async fn look_later(&self, lease: &Lease) -> Result<(), Error> {
        let fence = Write::Fence {
            lease: lease.clone(),
            progress: true,
        };
        self.store().commit(Commit::default().with(fence)).await?;
        self.store().release(lease, RETRY_LATER).await
    }

    async fn finish_subscription(&self, claimed: &Claimed) -> Result<(), Error> {
        let mut body = claimed.document.body.clone();
        body["deleting"] = false.into();
        let precondition = Precondition::EtagAndLease(claimed.document.etag, claimed.lease.clone());
        let write = Write::Put {
            key: claimed.lease.key.clone(),
            precondition,
            body,
            unique: Vec::new(),
            ttl: None,
            queue: QueueChange::Done,
        };
        self.store()
            .commit(Commit::default().with(write))
            .await
            .map(drop)
    }

    /// Queues the deletion of every cluster at rest. True if none is left that is busy otherwise. No cluster can
    /// appear behind the list: its creation checks that the subscription has not been deleted since it was read.
    pub(super) async fn queue_deletions(
        &self,
        claimed: &Claimed,
        claimed_at: Duration,
    ) -> Result<bool, Error> {
        let subscription = claimed.document.key.id.clone();
        if text(&claimed.document.body, "/subscription/state") != "Deleted" {
            return Ok(true);
        }
        let partition = Partition::subscription(&subscription);
        let mut after: Option<(String, String)> = None;
        let (mut is_done, mut renewed_at) = (true, claimed_at);
        loop {
            let page = self
                .store()
                .list(&ListRequest {
                    collection: CLUSTERS,
                    scope: Scope::Partition(&partition),
                    prefix: "",
                    after: after.as_ref().map(|(part, id)| (&**part, &**id)),
                    limit: PAGE,
                })
                .await?;
            let Some(last) = page.last() else {
                return Ok(is_done);
            };
            after = Some((partition.name().to_owned(), last.key.id.clone()));
            for document in &page {
                let (state, _) = states(&document.body);
                if state == crate::state::ProvisioningState::Deleting {
                    continue;
                }
                if !state.is_terminal() {
                    is_done = false;
                    continue;
                }
                self.keep_lease(&claimed.lease, &mut renewed_at).await?;
                let lease = claimed.lease.clone();
                is_done &= self.queue_deletion_of(document, lease).await?;
            }
        }
    }

    /// Renews the lease if it is time.
    async fn keep_lease(&self, lease: &Lease, renewed_at: &mut Duration) -> Result<(), Error> {
        let (now, options) = (self.clock().uptime(), &self.0.options);
        if now.saturating_sub(*renewed_at) >= options.renewal {
            self.store().renew(lease, options.lease_millis()).await?;
            *renewed_at = now;
        }
        Ok(())
    }

    /// Queues the deletion of a cluster at rest. False if it was changed meanwhile.
    async fn queue_deletion_of(&self, document: &Document, lease: Lease) -> Result<bool, Error> {
        let subscription = lease.key.id.clone();
        let request = Request {
            now: self.clock().now().to_string(),
            operation_id: neap_kit::http::RequestId::random().0,
            ..Request::default()
        };
        let location = &self.0.context.location;
        let decision = queue_deletion(&document.body, &subscription, location, &request);
        let operation = text(&decision.operation, "/id");
        let commit = Commit::default()
            .with(Write::Fence {
                lease,
                progress: true,
            })
            .with(Write::Put {
                key: document.key.clone(),
                precondition: Precondition::Etag(document.etag),
                unique: unique_keys(&decision.document),
                body: decision.document.clone(),
                ttl: None,
                // The claims of earlier work do not count against the deletion.
                queue: QueueChange::Queue {
                    name: QUEUE,
                    delay: 0,
                    reset: true,
                },
            })
            .create(
                subscription_document(OPERATIONS, &subscription, operation),
                decision.operation.clone(),
            )
            .audit(AuditRow {
                actor: self.0.options.owner.clone(),
                action: "delete cluster of a deleted subscription".to_owned(),
                target: document.key.id.clone(),
                detail: format!("operation {operation}"),
            });
        match self.store().commit(commit).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
