//! The deletion of a subscription: all its clusters are deleted.

use neap_kit::why::chain;
use neap_store::{
    AuditRow, Claimed, Commit, Document, Error, ListRequest, Partition, Precondition, QueueChange,
    Scope, Write,
};

use super::Backend;
use crate::{
    cluster::{Request, queue_deletion, states},
    documents::{
        CLUSTERS, OPERATIONS, QUEUE, SUBSCRIPTIONS, subscription_document, text, unique_keys,
    },
};

/// When a subscription is looked at again whose clusters are busy, in milliseconds.
const RETRY_LATER: i64 = 60_000;
/// The number of clusters that are read at once.
const PAGE: usize = 50;

impl Backend {
    pub(super) async fn work_on_subscription(&self, claimed: Claimed) {
        let id = claimed.document.key.id.clone();
        let ended = match self.queue_deletions(&claimed).await {
            Ok(true) => self.finish_subscription(&claimed).await,
            Ok(false) => self.store().release(&claimed.lease, RETRY_LATER).await,
            Err(error) => Err(error),
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

    /// Queues the deletion of every cluster at rest. True if none is left that is busy otherwise.
    async fn queue_deletions(&self, claimed: &Claimed) -> Result<bool, Error> {
        let subscription = claimed.document.key.id.clone();
        if text(&claimed.document.body, "/subscription/state") != "Deleted" {
            return Ok(true);
        }
        let partition = Partition::subscription(&subscription);
        let mut after: Option<(String, String)> = None;
        let mut is_done = true;
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
                is_done &= self.queue_deletion_of(document, &subscription).await?;
            }
        }
    }

    /// Queues the deletion of a cluster at rest. False if it was changed meanwhile.
    async fn queue_deletion_of(
        &self,
        document: &Document,
        subscription: &str,
    ) -> Result<bool, Error> {
        let request = Request {
            now: self.clock().now().to_string(),
            operation_id: neap_kit::http::RequestId::random().0,
            ..Request::default()
        };
        let location = &self.0.context.location;
        let decision = queue_deletion(&document.body, subscription, location, &request);
        let operation = text(&decision.operation, "/id");
        let commit = Commit::default()
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
                subscription_document(OPERATIONS, subscription, operation),
                decision.operation.clone(),
            )
            .audit(AuditRow {
                actor: SUBSCRIPTIONS.to_owned(),
                action: "delete cluster of a deleted subscription".to_owned(),
                target: document.key.id.clone(),
                ..AuditRow::default()
            });
        match self.store().commit(commit).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
