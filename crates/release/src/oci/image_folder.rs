//! Images in a folder, to be carried where no registry can be reached.
//!
//! The layout is the one that `oc image mirror` reads and writes:
//! `v2/REPOSITORY/manifests/DIGEST or TAG` and `v2/REPOSITORY/blobs/DIGEST`. A tag is a file of its own and no
//! link, so that the folder survives file systems without links.
//!
//! Invariants:
//! - a file has its name only when it is complete and its digest was checked;
//! - what is read is checked again: the folder may have been changed on its way.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tempfile::NamedTempFile;

use super::{
    client::{BlobSource, BlobStream, Error, What},
    digest::{Digest, DigestHasher},
    manifest::{Descriptor, MAX_MANIFEST, Manifest},
    reference::ImageRef,
};

/// What is read of a file at a time.
const PART: usize = 1 << 20;

/// A folder of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFolder {
    root: PathBuf,
}

impl ImageFolder {
    /// The folder at `root`, which need not exist before something is written.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    fn manifest_path(&self, image: &ImageRef, selector: &str) -> PathBuf {
        self.part(image, "manifests").join(selector)
    }

    fn blob_path(&self, image: &ImageRef, digest: &Digest) -> PathBuf {
        self.part(image, "blobs").join(digest.to_string())
    }

    /// Repositories are lower-case names between slashes, so that they lead nowhere else.
    fn part(&self, image: &ImageRef, part: &str) -> PathBuf {
        self.root.join("v2").join(image.repository()).join(part)
    }

    /// The manifest of an image.
    pub fn manifest(&self, image: &ImageRef) -> Result<Manifest, Error> {
        let path = self.manifest_path(image, image.selector());
        let bytes = read_file(&path, MAX_MANIFEST as u64, &What::Manifest)?;
        Manifest::read(bytes.into(), None, image.digest().as_ref()).map_err(|source| {
            Error::Manifest {
                image: path.display().to_string(),
                source,
            }
        })
    }

    /// Writes a manifest under its digest, and under the tag of `image` if it has one.
    pub fn write_manifest(&self, image: &ImageRef, manifest: &Manifest) -> Result<(), Error> {
        let digest = manifest.digest.to_string();
        for selector in [Some(digest.as_str()), image.tag()].into_iter().flatten() {
            let path = self.manifest_path(image, selector);
            let failed = |source| disk(&path, What::Manifest, source);
            let mut file = begin(&path).map_err(failed)?;
            file.write_all(&manifest.bytes).map_err(failed)?;
            finish(file, &path).map_err(failed)?;
        }
        Ok(())
    }

    /// The tags of a repository, by name.
    pub fn tags(&self, repository: &ImageRef) -> Result<Vec<String>, Error> {
        let path = self.part(repository, "manifests");
        let failed = |source| disk(&path, What::Tags, source);
        let mut tags = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            // Unfinished files begin with a dot, and digests have a colon.
            if !name.starts_with('.') && !name.contains(':') {
                tags.push(name.into_owned());
            }
        }
        tags.sort();
        Ok(tags)
    }

    /// Whether the repository has a blob of this size. Its digest was checked when it was written.
    pub fn has_blob(&self, image: &ImageRef, descriptor: &Descriptor) -> bool {
        let data = fs::metadata(self.blob_path(image, descriptor.digest()));
        data.is_ok_and(|data| data.is_file() && data.len() == descriptor.size())
    }

    /// Writes a blob that comes from a registry, which checks its digest.
    pub async fn write_blob(
        &self,
        image: &ImageRef,
        descriptor: &Descriptor,
        mut source: BlobStream,
        mut written: impl FnMut(u64),
    ) -> Result<(), Error> {
        let path = self.blob_path(image, descriptor.digest());
        let what = || What::Blob(descriptor.digest().clone());
        let failed = |source| disk(&path, what(), source);
        let mut file = begin(&path).map_err(failed)?;
        while let Some(part) = source.next().await? {
            file.write_all(&part).map_err(failed)?;
            written(part.len() as u64);
        }
        finish(file, &path).map_err(failed)
    }

    /// The whole content of a small blob.
    pub fn blob_bytes(
        &self,
        image: &ImageRef,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let mut blob = self.blob(image, descriptor)?;
        if descriptor.size() > limit {
            return Err(Error::TooLarge {
                image: blob.name(),
                what: blob.what(),
                size: descriptor.size(),
                limit,
            });
        }
        let mut content = Vec::new();
        while let Some(part) = blob.part()? {
            content.extend_from_slice(&part);
        }
        Ok(content.into())
    }

    /// A blob as a stream.
    pub fn blob(&self, image: &ImageRef, descriptor: &Descriptor) -> Result<FileBlob, Error> {
        let path = self.blob_path(image, descriptor.digest());
        let what = What::Blob(descriptor.digest().clone());
        let file = File::open(&path).map_err(|source| disk(&path, what.clone(), source))?;
        let hasher = DigestHasher::like(descriptor.digest()).map_err(|source| Error::Content {
            image: path.display().to_string(),
            what,
            source,
        })?;
        Ok(FileBlob {
            path,
            file,
            digest: descriptor.digest().clone(),
            size: descriptor.size(),
            received: 0,
            hasher: Some(hasher),
        })
    }
}

/// A blob of a folder. Its digest was checked only when the part after the last was asked for.
#[derive(Debug)]
pub struct FileBlob {
    path: PathBuf,
    file: File,
    digest: Digest,
    size: u64,
    received: u64,
    hasher: Option<DigestHasher>,
}

impl FileBlob {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn what(&self) -> What {
        What::Blob(self.digest.clone())
    }

    /// The next part; none after the last.
    pub fn part(&mut self) -> Result<Option<Bytes>, Error> {
        let mut part = vec![0; PART];
        let read = self.file.read(&mut part);
        let count = read.map_err(|source| disk(&self.path, self.what(), source))?;
        part.truncate(count);
        self.received += count as u64;
        let is_end = count == 0;
        if self.received > self.size || (is_end && self.received < self.size) {
            return Err(Error::Size {
                image: self.name(),
                what: self.what(),
                wanted: self.size,
                found: self.received,
            });
        }
        if !is_end {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&part);
            }
            return Ok(Some(part.into()));
        }
        if let Some(hasher) = self.hasher.take() {
            let checked = hasher.finish_as(&self.digest);
            checked.map_err(|source| Error::Content {
                image: self.name(),
                what: self.what(),
                source,
            })?;
        }
        Ok(None)
    }
}

impl BlobSource for FileBlob {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.part()
    }
}

fn disk(path: &Path, what: What, source: io::Error) -> Error {
    Error::Disk {
        image: path.display().to_string(),
        what,
        source,
    }
}

fn read_file(path: &Path, limit: u64, what: &What) -> Result<Vec<u8>, Error> {
    let failed = |source| disk(path, what.clone(), source);
    let file = File::open(path).map_err(failed)?;
    let mut content = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut content);
    let size = read.map_err(failed)? as u64;
    if size > limit {
        return Err(Error::TooLarge {
            image: path.display().to_string(),
            what: what.clone(),
            size,
            limit,
        });
    }
    Ok(content)
}

/// A file in the folder of `path`, which is created.
fn begin(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    tempfile::Builder::new().prefix(".").tempfile_in(folder)
}

fn finish(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let stored = file.persist(path).map_err(|error| error.error)?;
    // Temporary files are private; who carries the folder is rarely who made it.
    stored.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
}
