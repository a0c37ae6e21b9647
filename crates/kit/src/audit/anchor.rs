//! Keeps the end of the chain where the one who can change the file cannot: in an object.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{Audit, Error as FileError, Head, file::verify_up_to};
use crate::{
    apply::{Error, Hand},
    clock::Clock,
    manager::{Service, Turn},
};

/// Which file is anchored, and where.
#[derive(Debug, Clone)]
pub struct AnchorOptions {
    /// The audit file.
    pub path: PathBuf,
    /// Where the ConfigMap is.
    pub namespace: String,
    /// The name of the ConfigMap: one for each file.
    pub name: String,
    /// After something was noted, it is anchored within this time; what failed is tried again after
    /// it.
    pub within: Duration,
}

impl AnchorOptions {
    /// The audit file of a data folder, and where everybody looks for its anchor.
    pub fn of(folder: &Path) -> Self {
        Self {
            path: folder.join("audit.jsonl"),
            namespace: "kube-system".into(),
            name: "neap-audit".into(),
            within: Duration::from_secs(10),
        }
    }
}

/// Writes where the chain ends into a ConfigMap.
#[derive(Debug)]
pub struct Anchor {
    audit: Audit,
    /// One without a witness: what it writes would have to be anchored again.
    hand: Hand,
    options: AnchorOptions,
    clock: Clock,
    /// Whether the file is known to lead to the anchor that was there at first.
    checked: bool,
}

/// Why the end of the chain could not be anchored.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Write(#[from] Error),
    #[error("the anchor could not be read")]
    Read(#[from] kube::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Anchor {
    /// Anchors `audit` with `hand`, which should have no witness.
    pub fn new(audit: Audit, hand: Hand, options: AnchorOptions, clock: Clock) -> Self {
        Self {
            audit,
            hand,
            options,
            clock,
            checked: false,
        }
    }

    /// Anchors what is noted until `stop`, and then once more.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let again = self.try_to_fix().await;
            let wait = async {
                // What failed is not anchored before it is tried again, though nothing be noted.
                if !again {
                    self.audit.grown().await;
                }
                self.clock.sleep(self.options.within).await;
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = wait => {}
            }
        }
        self.try_to_fix().await;
    }

    /// Whether it has to be tried again, even if nothing more is noted.
    async fn try_to_fix(&mut self) -> bool {
        match self.fix().await {
            Ok(()) => false,
            Err(Trouble::Write(Error::NotLeading(_))) => true,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, "the audit could not be anchored");
                // A damaged file does not mend itself, and its anchor is evidence.
                !matches!(error, Trouble::File(FileError::Damaged { .. }))
            }
        }
    }

    async fn fix(&mut self) -> Result<(), Trouble> {
        let head = self.audit.head();
        let AnchorOptions {
            namespace, name, ..
        } = &self.options;
        let maps: Api<ConfigMap> = Api::namespaced(self.hand.client().clone(), namespace);
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
            self.hand.create(&map).await?;
            self.checked = true;
            return Ok(());
        };
        let old = Head::anchored(&map);
        if old.as_ref() == Some(&head) {
            return Ok(());
        }
        if !self.checked {
            self.check(head.clone(), old).await?;
            self.checked = true;
        }
        let data = Some((&head).into());
        self.hand.replace(&ConfigMap { data, ..map }).await?;
        Ok(())
    }

    /// Whether the file leads through `old` to `head`. What follows may be half written just now.
    async fn check(&self, head: Head, old: Option<Head>) -> Result<(), FileError> {
        let path = self.options.path.clone();
        let checked = spawn_blocking(move || verify_up_to(&path, &head, old.as_ref()));
        match checked.await {
            Ok(checked) => checked,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

type Data = std::collections::BTreeMap<String, String>;

impl From<&Head> for Data {
    fn from(head: &Head) -> Self {
        let record = ("record".to_owned(), head.index.to_string());
        [record, ("hash".to_owned(), head.hash.clone())].into()
    }
}

impl Head {
    /// The head that an anchor holds.
    pub fn anchored(map: &ConfigMap) -> Option<Self> {
        let data = map.data.as_ref()?;
        Some(Self {
            index: data.get("record")?.parse().ok()?,
            hash: data.get("hash")?.clone(),
        })
    }
}

impl From<Anchor> for Service {
    /// Ends after the audit, to anchor its last record, and while this process still leads.
    fn from(anchor: Anchor) -> Self {
        Self::new("audit anchor", |stop| anchor.run(stop)).in_turn(Turn::Seal)
    }
}
