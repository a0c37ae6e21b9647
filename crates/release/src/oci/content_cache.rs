//! Manifests and small blobs of registries in a folder of this machine.
//!
//! Content with a digest never changes, so what is in the folder need not be asked for again. A registry is then
//! not asked either whether the image is still there, which is why the folder is used only where the user names
//! one.
//!
//! Invariants:
//! - a file has its name only when it is complete and its digest was checked;
//! - what is read is checked again, and a file that was changed counts as absent;
//! - a folder that cannot be written costs time and nothing else.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tempfile::NamedTempFile;

use super::digest::{self, Digest};

/// The largest content that is kept: manifests, configurations, and layers of manifests.
const MAX_CONTENT: u64 = 4 << 20;

/// A folder with content by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentCache {
    root: PathBuf,
}

impl ContentCache {
    /// The folder at `root`, which need not exist before something is kept.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The content with this digest, if it is there and has at most `limit` bytes.
    pub fn get(&self, digest: &Digest, limit: u64) -> Option<Bytes> {
        let limit = limit.min(MAX_CONTENT);
        let file = File::open(self.path(digest)).ok()?;
        let size = file.metadata().ok()?.len();
        let mut content = Vec::with_capacity(size.min(limit) as usize);
        file.take(limit + 1).read_to_end(&mut content).ok()?;
        let is_whole = content.len() as u64 <= limit;
        (is_whole && digest::verify(&content, digest).is_ok()).then(|| content.into())
    }

    /// Keeps content whose digest was checked.
    pub fn put(&self, digest: &Digest, content: &[u8]) {
        if content.len() as u64 > MAX_CONTENT {
            return;
        }
        if let Err(error) = self.write(&self.path(digest), content) {
            tracing::debug!(%digest, %error, "content is not kept on this machine");
        }
    }

    /// Images may be private, so only the user may read the folder.
    fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(content)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let algorithm = digest.algorithm().to_string();
        self.root.join(algorithm).join(digest.digest())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn content_is_found_again_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ContentCache::new(&folder.path().join("cache"));
        let digest = digest::sha256(b"content");
        assert_eq!(cache.get(&digest, 100), None);
        cache.put(&digest, b"content");
        assert_eq!(cache.get(&digest, 100).unwrap(), &b"content"[..]);
        assert_eq!(
            cache.get(&digest, 6),
            None,
            "it is larger than what is asked for"
        );
        let mode = fs::metadata(folder.path().join("cache"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o077, 0, "nobody else may read it");
    }

    #[test]
    fn content_that_was_changed_or_cut_counts_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ContentCache::new(folder.path());
        let digest = digest::sha256(b"content");
        for changed in [&b"contend"[..], b"cont", b"", b"content and more"] {
            cache.put(&digest, b"content");
            fs::write(cache.path(&digest), changed).unwrap();
            assert_eq!(cache.get(&digest, 100), None);
        }
        cache.put(&digest, b"content");
        assert!(cache.get(&digest, 100).is_some(), "it is written anew");
    }

    #[test]
    fn large_content_and_folders_that_cannot_be_written_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let large = vec![0; MAX_CONTENT as usize + 1];
        let digest = digest::sha256(&large);
        let cache = ContentCache::new(folder.path());
        cache.put(&digest, &large);
        assert!(!cache.path(&digest).exists());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = ContentCache::new(&file);
        let digest = digest::sha256(b"content");
        cache.put(&digest, b"content");
        assert_eq!(cache.get(&digest, 100), None);
    }
}
