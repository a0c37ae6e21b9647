//! The index in a folder.
//!
//! ```text
//! blobs/sha256/e3/e3b0…                       a content
//! uploads/…                                   a content that is being received
//! repositories/ocp/release/_blobs/sha256-e3…  the blob is in the repository
//!                         /_manifests/sha256-e3…   what is known about the manifest
//!                         /_tags/v1                the digest that the tag leads to
//! ```
//!
//! Each file is written next to its place and renamed, so that a reader sees all of it or nothing.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    digest::Digest,
    index::{Change, Index},
    names::RepositoryName,
};

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read or written.
    #[error("the registry's folder {} cannot be used", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The folder of a registry.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates what is missing, and removes uploads that were left unfinished.
    pub(super) async fn open(path: PathBuf) -> Result<Self, OpenError> {
        let folder = Self { path };
        folder
            .blocking(|path| {
                let uploads = path.join("uploads");
                if uploads.exists() {
                    fs::remove_dir_all(&uploads)?;
                }
                for part in ["uploads", "blobs", "repositories"] {
                    fs::create_dir_all(path.join(part))?;
                }
                Ok(())
            })
            .await
            .map_err(|source| folder.error(source))?;
        Ok(folder)
    }

    /// The index, and the contents with their lengths.
    pub(super) async fn load(&self) -> Result<(Index, BTreeMap<Digest, u64>), OpenError> {
        let load = self.blocking(|path| {
            let blobs = load_blobs(&path.join("blobs"))?;
            let mut index = Index::default();
            load_repositories(&path.join("repositories"), "", &blobs, &mut index)?;
            Ok((index, blobs))
        });
        load.await.map_err(|source| self.error(source))
    }

    /// Makes a change of a repository durable.
    pub(super) async fn persist(&self, name: &RepositoryName, change: &Change) -> io::Result<()> {
        let (name, change) = (name.clone(), change.clone());
        self.blocking(move |path| persist(path, &name, &change))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(move || work(&path)).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn error(&self, source: io::Error) -> OpenError {
        OpenError::Folder {
            path: self.path.clone(),
            source,
        }
    }
}

fn load_blobs(folder: &Path) -> io::Result<BTreeMap<Digest, u64>> {
    let mut blobs = BTreeMap::new();
    for algorithm in ["sha256", "sha512"] {
        for beginning in entries(&folder.join(algorithm))? {
            for file in entries(&beginning)? {
                let digest = format!("{algorithm}:{}", name_of(&file));
                if let Ok(digest) = digest.parse() {
                    blobs.insert(digest, fs::metadata(&file)?.len());
                }
            }
        }
    }
    Ok(blobs)
}

/// Reads the repository in `folder` and those below it. What has lost its content is left out.
fn load_repositories(
    folder: &Path,
    name: &str,
    blobs: &BTreeMap<Digest, u64>,
    index: &mut Index,
) -> io::Result<()> {
    let mut changes = Vec::new();
    for entry in entries(folder)? {
        let part = name_of(&entry);
        match part.as_str() {
            "_blobs" => changes.extend(load_links(&entry)?.into_iter().map(Change::AddBlob)),
            "_manifests" => changes.extend(load_manifests(&entry)?),
            "_tags" => changes.extend(load_tags(&entry)?),
            _ => {
                let below = if name.is_empty() {
                    part
                } else {
                    format!("{name}/{part}")
                };
                load_repositories(&entry, &below, blobs, index)?;
            }
        }
    }
    let Ok(name) = name.parse::<RepositoryName>() else {
        return Ok(());
    };
    // Tags last: they lead to manifests.
    changes.sort_by_key(|change| matches!(change, Change::SetTag(..)));
    for change in changes {
        let repository = index.repository(&name);
        let known = match &change {
            Change::AddBlob(digest) | Change::PutManifest(digest, _) => blobs.contains_key(digest),
            Change::SetTag(_, digest) => {
                repository.is_some_and(|found| found.manifests.contains_key(digest))
            }
            _ => true,
        };
        if known {
            index.apply(&name, &change);
        } else {
            tracing::warn!(%name, ?change, "the registry has lost a content");
        }
    }
    Ok(())
}

fn load_links(folder: &Path) -> io::Result<Vec<Digest>> {
    let files = entries(folder)?;
    let digests = files.iter().filter_map(|file| digest_of_file(file));
    Ok(digests.collect())
}

fn load_manifests(folder: &Path) -> io::Result<Vec<Change>> {
    let mut manifests = Vec::new();
    for file in entries(folder)? {
        let Some(digest) = digest_of_file(&file) else {
            continue;
        };
        match serde_json::from_slice(&fs::read(&file)?) {
            Ok(record) => manifests.push(Change::PutManifest(digest, record)),
            Err(error) => tracing::warn!(%digest, %error, "a manifest's record cannot be read"),
        }
    }
    Ok(manifests)
}

fn load_tags(folder: &Path) -> io::Result<Vec<Change>> {
    let mut tags = Vec::new();
    for file in entries(folder)? {
        let target = fs::read_to_string(&file)?;
        if let (Ok(tag), Ok(digest)) = (name_of(&file).parse(), target.trim().parse()) {
            tags.push(Change::SetTag(tag, digest));
        }
    }
    Ok(tags)
}

fn persist(root: &Path, name: &RepositoryName, change: &Change) -> io::Result<()> {
    let repository = root.join("repositories").join(name.as_str());
    let blobs = repository.join("_blobs");
    let manifests = repository.join("_manifests");
    let tags = repository.join("_tags");
    match change {
        Change::AddBlob(digest) => write(&blobs, &file_of(digest), b""),
        Change::RemoveBlob(digest) => remove(&blobs.join(file_of(digest))),
        Change::PutManifest(digest, record) => {
            let record = serde_json::to_vec(record).map_err(io::Error::other)?;
            write(&manifests, &file_of(digest), &record)
        }
        Change::RemoveManifest(digest) => {
            // Its tags first: a tag never leads nowhere.
            for file in entries(&tags)? {
                if fs::read_to_string(&file)?.trim() == digest.to_string() {
                    remove(&file)?;
                }
            }
            remove(&manifests.join(file_of(digest)))
        }
        Change::SetTag(tag, digest) => write(&tags, tag.as_str(), digest.to_string().as_bytes()),
        Change::RemoveTag(tag) => remove(&tags.join(tag.as_str())),
    }
}

fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // No digest and no tag begins with a dot.
    let draft = folder.join(format!(".{name}.new"));
    fs::write(&draft, content)?;
    fs::rename(draft, folder.join(name))
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn file_of(digest: &Digest) -> String {
    format!("{}-{}", digest.algorithm().name(), digest.hex())
}

fn digest_of_file(file: &Path) -> Option<Digest> {
    name_of(file).replacen('-', ":", 1).parse().ok()
}

fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The entries of a folder, without drafts; none if there is no such folder.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let mut entries = Vec::new();
    for entry in found {
        let path = entry?.path();
        if !name_of(&path).starts_with('.') {
            entries.push(path);
        }
    }
    entries.sort();
    Ok(entries)
}
