//! Collects contents that no repository needs any more.

use super::{Registry, error::RegistryError, index::Change};

/// What was collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs that left a repository, since no manifest of it names them.
    pub unlinked: usize,
    /// Contents that were removed.
    pub contents: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Uploads that were given up.
    pub uploads: usize,
}

impl Registry {
    /// Removes contents that no manifest names and that were not asked for in a while, and gives up
    /// uploads that get no more data. Manifests stay, with or without a tag: they are asked for by
    /// digest.
    pub async fn collect(&self) -> Result<Collected, RegistryError> {
        let mut collected = Collected {
            uploads: self.drop_stale_uploads().await,
            ..Collected::default()
        };
        let now = self.clock.uptime();
        let Some(before) = now.checked_sub(self.settings.blob_grace) else {
            return Ok(collected);
        };
        // No manifest is stored meanwhile, so nothing that it names goes away under it.
        let changing = self.changing.lock().await;
        let old = self.contents.older_than(before);
        let needed = self.index.lock().needed();
        for digest in old.into_iter().filter(|digest| !needed.contains(digest)) {
            let holders: Vec<_> = {
                let index = self.index.lock();
                let repositories = index.repositories();
                let holders = repositories.filter(|(_, it)| it.blobs.contains(&digest));
                holders.map(|(name, _)| name.clone()).collect()
            };
            for name in holders {
                let change = Change::RemoveBlob(digest.clone());
                self.persist_and_apply(&name, &change).await?;
                collected.unlinked += 1;
            }
            collected.bytes += self.contents.remove(&digest).await?;
            collected.contents += 1;
        }
        drop(changing);
        if collected != Collected::default() {
            tracing::info!(?collected, "the registry was cleaned up");
        }
        Ok(collected)
    }
}
