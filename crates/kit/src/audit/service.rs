//! Writes down what everybody notes.

use std::{path::Path, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

use super::{Deed, Error, Head, file::Log};
use crate::{
    apply::{self, Witness, Write},
    clock::Clock,
    manager::{Service, Turn},
};

/// So much may be noted before whoever notes has to wait for the disk.
const WAITING: usize = 256;
/// A file of this many bytes is full, and the next one is begun.
const FULL: u64 = 16 << 20;
/// After a failure of the disk.
const AGAIN: Duration = Duration::from_secs(1);

/// Notes what is done. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Audit {
    outbox: mpsc::Sender<Deed>,
    head: watch::Receiver<Head>,
    clock: Clock,
}

/// Writes it to the file.
#[derive(Debug)]
pub struct AuditService {
    log: Arc<Mutex<Log>>,
    inbox: mpsc::Receiver<Deed>,
    head: watch::Sender<Head>,
    clock: Clock,
}

impl Audit {
    /// The audit in the file at `path`, which is checked first. What was full before is left to
    /// [`super::verify_file`].
    pub fn open(path: &Path, clock: Clock) -> Result<(Self, AuditService), Error> {
        Self::open_in_parts_of(FULL, path, clock)
    }

    /// The same with files that are full sooner or later.
    pub fn open_in_parts_of(
        bytes: u64,
        path: &Path,
        clock: Clock,
    ) -> Result<(Self, AuditService), Error> {
        let log = Log::open(path, bytes)?;
        let (outbox, inbox) = mpsc::channel(WAITING);
        let (sender, head) = watch::channel(log.head.clone());
        let audit = Self {
            outbox,
            head,
            clock,
        };
        let service = AuditService {
            log: Arc::new(Mutex::new(log)),
            inbox,
            head: sender,
            clock,
        };
        Ok((audit, service))
    }

    /// Notes that `actor` did `action` to `object`, and what came of it. Waits while there is no
    /// room.
    pub async fn note(&self, actor: &str, action: &str, object: &str, outcome: &str) {
        let deed = Deed {
            time: self.clock.now(),
            actor: actor.to_owned(),
            action: action.to_owned(),
            object: object.to_owned(),
            outcome: outcome.to_owned(),
        };
        if let Err(lost) = self.outbox.send(deed).await {
            tracing::error!(deed = ?lost.0, "the audit has ended, and this is not in it");
        }
    }

    /// Where the file ends, as far as it is on disk.
    pub fn head(&self) -> Head {
        self.head.borrow().clone()
    }

    /// Resolves when more is on disk; never if the audit has ended.
    pub(super) async fn grown(&mut self) {
        if self.head.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Witness for Audit {
    fn saw<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a apply::Error>,
    ) -> BoxFuture<'a, ()> {
        let object = format!("{} {}", write.kind, write.key);
        let action = match &write.part {
            Some(part) => format!("{} {part}", write.verb),
            None => write.verb.to_owned(),
        };
        let outcome = outcome.map_or_else(ToString::to_string, |()| "done".to_owned());
        Box::pin(async move { self.note(&write.manager, &action, &object, &outcome).await })
    }
}

impl AuditService {
    /// Writes until `stop`, and then what was noted before.
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

    /// Writes everything that is there, in one go. Whether it can go on.
    async fn write(&mut self, first: Deed, stop: &CancellationToken) -> bool {
        let mut deeds = vec![first];
        while let Ok(deed) = self.inbox.try_recv() {
            deeds.push(deed);
        }
        loop {
            match self.append(&deeds).await {
                Ok(()) => return true,
                Err(error) if stop.is_cancelled() => {
                    tracing::error!(%error, lost = deeds.len(), "the last audit records are lost");
                    return false;
                }
                Err(error) => {
                    tracing::error!(%error, "the audit waits for the disk, and all writes with it");
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = self.clock.sleep(AGAIN) => {}
                    }
                }
            }
        }
    }

    async fn append(&self, deeds: &[Deed]) -> Result<(), Error> {
        let (log, deeds) = (self.log.clone(), deeds.to_vec());
        let writing = spawn_blocking(move || {
            let mut log = log.lock();
            log.append(&deeds).map(|()| log.head.clone())
        });
        let head = match writing.await {
            Ok(head) => head?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        self.head.send_replace(head);
        Ok(())
    }
}

impl From<AuditService> for Service {
    /// Ends after those whose deeds it writes down.
    fn from(audit: AuditService) -> Self {
        Self::new("audit", |stop| audit.run(stop)).in_turn(Turn::Record)
    }
}
