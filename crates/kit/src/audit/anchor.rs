//! Stores the end of the chain in an object, out of reach of a user who can change the file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{Audit, ChainHead, Error as FileError, file::verify_up_to};
use crate::{
    apply::{Error, Writer},
    clock::Clock,
    manager::{Component, ShutdownPhase},
};

/// The anchored file, and the location of the anchor.
#[derive(Debug, Clone)]
pub struct AnchorOptions {
    /// The audit file.
    pub path: PathBuf,
    /// The namespace of the ConfigMap.
    pub namespace: String,
    /// The name of the ConfigMap, one per file.
    pub name: String,
    /// The longest time until a new record is anchored, and the delay before a retry.
    pub interval: Duration,
}

impl AnchorOptions {
    /// The audit file of a data folder, and the usual location of its anchor.
    pub fn for_data_folder(folder: &Path) -> Self {
        Self {
            path: folder.join("audit.jsonl"),
            namespace: "kube-system".into(),
            name: "neap-audit".into(),
            interval: Duration::from_secs(10),
        }
    }
}

/// Writes the head of the chain into a ConfigMap.
#[derive(Debug)]
pub struct Anchor {
    audit: Audit,
    /// A writer without an observer: an audited write of the anchor would have to be anchored again.
    writer: Writer,
    options: AnchorOptions,
    clock: Clock,
    /// Whether the file was verified against the anchor that existed at the start.
    checked: bool,
}

/// Why the head of the chain could not be anchored.
#[derive(Debug, thiserror::Error)]
enum AnchorError {
    #[error(transparent)]
    Write(#[from] Error),
    #[error("the anchor could not be read")]
    Read(#[from] kube::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Anchor {
    /// Anchors `audit` with `writer`, which must not have the audit as its observer.
    pub fn new(audit: Audit, writer: Writer, options: AnchorOptions, clock: Clock) -> Self {
        Self {
            audit,
            writer,
            options,
            clock,
            checked: false,
        }
    }

    /// Anchors new records until `stop`, and then once more.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let retry = self.try_anchor().await;
            let wait = async {
                // A failed attempt is repeated even if no record is added.
                if !retry {
                    self.audit.head_changed().await;
                }
                self.clock.sleep(self.options.interval).await;
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = wait => {}
            }
        }
        self.try_anchor().await;
    }

    /// Anchors the head. Whether to retry, even if no record is added.
    async fn try_anchor(&mut self) -> bool {
        match self.anchor_head().await {
            Ok(()) => false,
            Err(AnchorError::Write(Error::NotLeading(_))) => true,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, "the audit could not be anchored");
                // A damaged file does not recover, and its anchor is evidence.
                !matches!(error, AnchorError::File(FileError::Damaged { .. }))
            }
        }
    }

    async fn anchor_head(&mut self) -> Result<(), AnchorError> {
        let head = self.audit.head();
        let AnchorOptions {
            namespace, name, ..
        } = &self.options;
        let maps: Api<ConfigMap> = Api::namespaced(self.writer.client().clone(), namespace);
        let Some(map) = maps.get_opt(name).await? else {
            let metadata = ObjectMeta {
                namespace: Some(namespace.clone()),
                name: Some(name.clone()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap {
                metadata,
                data: Some((&head).into()),
                ..ConfigMap::default()
            };
            self.writer.create(&map).await?;
            self.checked = true;
            return Ok(());
        };
        let old = ChainHead::anchored(&map);
        if old.as_ref() == Some(&head) {
            return Ok(());
        }
        if !self.checked {
            self.check(head.clone(), old).await?;
            self.checked = true;
        }
        let data = Some((&head).into());
        self.writer.replace(&ConfigMap { data, ..map }).await?;
        Ok(())
    }

    /// Verifies that the file leads through `old` to `head`. The record after it may be incomplete,
    /// because it is being written.
    async fn check(&self, head: ChainHead, old: Option<ChainHead>) -> Result<(), FileError> {
        let path = self.options.path.clone();
        let checked = spawn_blocking(move || verify_up_to(&path, &head, old.as_ref()));
        match checked.await {
            Ok(checked) => checked,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

type AnchorData = std::collections::BTreeMap<String, String>;

impl From<&ChainHead> for AnchorData {
    fn from(head: &ChainHead) -> Self {
        let record = ("record".to_owned(), head.index.to_string());
        [record, ("hash".to_owned(), head.hash.clone())].into()
    }
}

impl ChainHead {
    /// The head that is stored in an anchor.
    pub fn anchored(map: &ConfigMap) -> Option<Self> {
        let data = map.data.as_ref()?;
        Some(Self {
            index: data.get("record")?.parse().ok()?,
            hash: data.get("hash")?.clone(),
        })
    }
}

impl From<Anchor> for Component {
    /// Stopped after the audit, to anchor its last record, and while this process still leads.
    fn from(anchor: Anchor) -> Self {
        Self::new("audit anchor", |stop| anchor.run(stop)).in_phase(ShutdownPhase::AuditAnchor)
    }
}
