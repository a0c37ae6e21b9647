//! Blobs, and the results of actions.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{self, SHA256};
use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use tonic::Status;

use super::{
    messages::{ActionResult, BlobDigest, BuildAction, InputDirectory},
    precondition::missing,
};

/// The largest blob, and the largest sum of all.
pub(super) const MAX_BLOB_BYTES: usize = 16 << 20;
const MAX_STORE_BYTES: usize = 1 << 30;
/// The number of action results.
const MAX_RESULTS: usize = 100_000;
const HASH_CHARS: usize = 64;

/// The content addressable storage and the action cache.
#[derive(Debug, Default)]
pub(super) struct BlobStore {
    content: Mutex<StoreContent>,
}

#[derive(Debug, Default)]
struct StoreContent {
    blobs: BTreeMap<BlobDigest, Bytes>,
    bytes: usize,
    /// By the instance name and the digest of the action.
    results: BTreeMap<(String, BlobDigest), ActionResult>,
}

impl BlobDigest {
    /// The digest of a content.
    pub fn of(content: &[u8]) -> Self {
        let hash = digest::digest(&SHA256, content);
        let hash = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self {
            hash: hash.collect(),
            size_bytes: content.len() as i64,
        }
    }
}

/// Refuses what is no digest.
pub(super) fn valid(digest: Option<BlobDigest>) -> Result<BlobDigest, Status> {
    let digest = digest.ok_or_else(|| Status::invalid_argument("no digest is given"))?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digest.hash.len() != HASH_CHARS || !digest.hash.bytes().all(is_hex) {
        let message = format!("{:?} is no SHA-256 in lower-case hexadecimal", digest.hash);
        return Err(Status::invalid_argument(message));
    }
    if digest.size_bytes < 0 {
        return Err(Status::invalid_argument("the size of a digest is negative"));
    }
    Ok(digest)
}

impl BlobStore {
    /// The content of a blob. The empty one is always there.
    pub(super) fn get(&self, digest: &BlobDigest) -> Option<Bytes> {
        if *digest == BlobDigest::of(b"") {
            return Some(Bytes::new());
        }
        self.content.lock().blobs.get(digest).cloned()
    }

    pub(super) fn has(&self, digest: &BlobDigest) -> bool {
        self.get(digest).is_some()
    }

    /// Stores a blob whose content has this digest.
    pub(super) fn put(&self, digest: &BlobDigest, content: Bytes) -> Result<(), Status> {
        if content.len() > MAX_BLOB_BYTES {
            let message = format!("a blob has at most {MAX_BLOB_BYTES} bytes");
            return Err(Status::invalid_argument(message));
        }
        let found = BlobDigest::of(&content);
        if found != *digest {
            let message = format!(
                "the content is {}/{}, and not {}/{}",
                found.hash, found.size_bytes, digest.hash, digest.size_bytes
            );
            return Err(Status::invalid_argument(message));
        }
        let mut state = self.content.lock();
        if state.blobs.contains_key(digest) {
            return Ok(());
        }
        if state.bytes + content.len() > MAX_STORE_BYTES {
            return Err(Status::resource_exhausted("the storage is full"));
        }
        state.bytes += content.len();
        state.blobs.insert(digest.clone(), content);
        Ok(())
    }

    /// The result of an action whose outputs are all there.
    pub(super) fn result(&self, instance: &str, action: &BlobDigest) -> Option<ActionResult> {
        let key = (instance.to_owned(), action.clone());
        let result = self.content.lock().results.get(&key).cloned()?;
        let is_complete = outputs(&result).all(|digest| self.has(digest));
        is_complete.then_some(result)
    }

    pub(super) fn set_result(
        &self,
        instance: &str,
        action: BlobDigest,
        result: ActionResult,
    ) -> Result<(), Status> {
        let mut state = self.content.lock();
        if state.results.len() >= MAX_RESULTS {
            return Err(Status::resource_exhausted("the action cache is full"));
        }
        state.results.insert((instance.to_owned(), action), result);
        Ok(())
    }

    /// An action whose command and inputs are all there.
    pub(super) fn action(&self, digest: &BlobDigest) -> Result<BuildAction, Status> {
        let Some(content) = self.get(digest) else {
            return Err(missing([digest]));
        };
        let action = BuildAction::decode(content)
            .map_err(|error| Status::invalid_argument(format!("the action is none: {error}")))?;
        let command = valid(action.command_digest.clone())?;
        let root = valid(action.input_root_digest.clone())?;
        let (_, mut absent) = self.tree(&root)?;
        if !self.has(&command) {
            absent.insert(command);
        }
        if absent.is_empty() {
            Ok(action)
        } else {
            Err(missing(&absent))
        }
    }

    /// A directory and all below it, each once, and the blobs of them that are not there.
    pub(super) fn tree(
        &self,
        root: &BlobDigest,
    ) -> Result<(Vec<InputDirectory>, BTreeSet<BlobDigest>), Status> {
        let (mut directories, mut absent) = (Vec::new(), BTreeSet::new());
        let mut seen = BTreeSet::from([root.clone()]);
        let mut next = vec![root.clone()];
        while let Some(digest) = next.pop() {
            let Some(content) = self.get(&digest) else {
                absent.insert(digest);
                continue;
            };
            let directory = InputDirectory::decode(content).map_err(|error| {
                Status::invalid_argument(format!("{} is no directory: {error}", digest.hash))
            })?;
            for file in &directory.files {
                let file = valid(file.digest.clone())?;
                if !self.has(&file) {
                    absent.insert(file);
                }
            }
            for inner in directory.directories.iter().rev() {
                let inner = valid(inner.digest.clone())?;
                if seen.insert(inner.clone()) {
                    next.push(inner);
                }
            }
            directories.push(directory);
        }
        Ok((directories, absent))
    }
}

/// The blobs of a result.
fn outputs(result: &ActionResult) -> impl Iterator<Item = &BlobDigest> {
    let files = result
        .output_files
        .iter()
        .filter_map(|it| it.digest.as_ref());
    let trees = result.output_directories.iter();
    let trees = trees.filter_map(|it| it.tree_digest.as_ref());
    let texts = [&result.stdout_digest, &result.stderr_digest];
    files.chain(trees).chain(texts.into_iter().flatten())
}
