//! Records actions and writes them to the file.

use std::{path::Path, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

use super::{AuditedAction, ChainHead, Error, file::AuditLog};
use crate::{
    apply::{self, Write, WriteObserver},
    clock::Clock,
    manager::{Component, ShutdownPhase},
};

/// The number of actions that can be queued before callers wait for the disk.
const QUEUE_CAPACITY: usize = 256;
/// The length from which a file is full, and the next one is created.
const MAX_PART_BYTES: u64 = 16 << 20;
/// The delay before a retry after a failure of the disk.
const DISK_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Records actions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit {
    outbox: mpsc::Sender<AuditedAction>,
    head: watch::Receiver<ChainHead>,
    clock: Clock,
}

/// Writes the recorded actions to the file.
#[derive(Debug)]
pub struct AuditWriter {
    log: Arc<Mutex<AuditLog>>,
    inbox: mpsc::Receiver<AuditedAction>,
    head: watch::Sender<ChainHead>,
    clock: Clock,
}

impl Audit {
    /// Opens the audit in the file at `path`, which is verified first. Full parts are not; see
    /// [`super::verify_file`].
    pub fn open(path: &Path, clock: Clock) -> Result<(Self, AuditWriter), Error> {
        Self::open_with_part_size(MAX_PART_BYTES, path, clock)
    }

    /// The same with another maximum length of files.
    pub fn open_with_part_size(
        bytes: u64,
        path: &Path,
        clock: Clock,
    ) -> Result<(Self, AuditWriter), Error> {
        let log = AuditLog::open(path, bytes)?;
        let (outbox, inbox) = mpsc::channel(QUEUE_CAPACITY);
        let (sender, head) = watch::channel(log.head.clone());
        let audit = Self {
            outbox,
            head,
            clock,
        };
        let writer = AuditWriter {
            log: Arc::new(Mutex::new(log)),
            inbox,
            head: sender,
            clock,
        };
        Ok((audit, writer))
    }

    /// Records that `actor` did `action` to `object` with this outcome. Waits while the queue is full.
    pub async fn record(&self, actor: &str, action: &str, object: &str, outcome: &str) {
        self.send(AuditedAction {
            time: self.clock.now(),
            actor: actor.to_owned(),
            action: action.to_owned(),
            object: object.to_owned(),
            outcome: outcome.to_owned(),
            reason: None,
        })
        .await;
    }

    async fn send(&self, action: AuditedAction) {
        if let Err(lost) = self.outbox.send(action).await {
            tracing::error!(action = ?lost.0, "the audit has ended, and this action is not recorded");
        }
    }

    /// The head of the chain that is on disk.
    pub fn head(&self) -> ChainHead {
        self.head.borrow().clone()
    }

    /// Resolves when more records are on disk; never after the audit has ended.
    pub(super) async fn head_changed(&mut self) {
        if self.head.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl WriteObserver for Audit {
    fn on_write<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a apply::Error>,
    ) -> BoxFuture<'a, ()> {
        let object = format!("{} {}", write.kind, write.key);
        let action = match &write.subresource {
            Some(subresource) => format!("{} {subresource}", write.verb),
            None => write.verb.to_owned(),
        };
        let outcome = outcome.map_or_else(ToString::to_string, |()| "done".to_owned());
        Box::pin(self.send(AuditedAction {
            time: self.clock.now(),
            actor: write.manager.clone(),
            action,
            object,
            outcome,
            reason: write.reason.as_deref().map(str::to_owned),
        }))
    }
}

impl AuditWriter {
    /// Writes until `stop`, and then the actions that were recorded before.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let first = tokio::select! {
                () = stop.cancelled() => break,
                first = self.inbox.recv() => first,
            };
            let Some(first) = first else { break };
            if !self.write(first, &stop).await {
                return;
            }
        }
        self.inbox.close();
        while let Some(first) = self.inbox.recv().await {
            if !self.write(first, &stop).await {
                return;
            }
        }
    }

    /// Writes all queued actions at once. False if they are lost because the process stops.
    async fn write(&mut self, first: AuditedAction, stop: &CancellationToken) -> bool {
        let mut actions = vec![first];
        while let Ok(action) = self.inbox.try_recv() {
            actions.push(action);
        }
        loop {
            match self.append(&actions).await {
                Ok(()) => return true,
                Err(error) if stop.is_cancelled() => {
                    tracing::error!(%error, lost = actions.len(), "the last audit records are lost");
                    return false;
                }
                Err(error) => {
                    tracing::error!(%error, "the audit cannot be written; all writes wait until it can");
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = self.clock.sleep(DISK_RETRY_DELAY) => {}
                    }
                }
            }
        }
    }

    async fn append(&self, actions: &[AuditedAction]) -> Result<(), Error> {
        let (log, actions) = (self.log.clone(), actions.to_vec());
        let writing = spawn_blocking(move || {
            let mut log = log.lock();
            log.append(&actions).map(|()| log.head.clone())
        });
        let head = match writing.await {
            Ok(head) => head?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        self.head.send_replace(head);
        Ok(())
    }
}

impl From<AuditWriter> for Component {
    /// Stopped after the components whose writes it records.
    fn from(audit: AuditWriter) -> Self {
        Self::new("audit", |stop| audit.run(stop)).in_phase(ShutdownPhase::Audit)
    }
}
