//! The contents of blobs and manifests, by digest: files, or memory.

use std::{
    collections::BTreeMap,
    io::{self, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use neap_kit::{client::Body, clock::Uptime};
use parking_lot::Mutex;
use tokio::{
    fs::{self, File},
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

use super::{
    digest::{Algorithm, Digest, DigestHasher},
    error::{ErrorCode, RegistryError},
};

/// What is read from a file at a time.
const CHUNK: usize = 64 << 10;

/// All contents. Each exists once, in however many repositories it is.
#[derive(Debug)]
pub(super) struct Contents {
    /// The folder of the files; none keeps them in memory.
    folder: Option<PathBuf>,
    max: u64,
    state: Arc<Mutex<ContentsState>>,
}

#[derive(Debug, Default)]
struct ContentsState {
    stored: BTreeMap<Digest, Stored>,
    /// The bytes of everything that is stored, and of uploads under way.
    used: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    size: u64,
    /// When it was last pushed or asked for.
    touched: Uptime,
    content: Option<Bytes>,
}

/// A content that is being received. Its room and its file are given back when it is dropped before it is stored, as
/// when its client disconnects.
#[derive(Debug)]
pub(super) struct Incoming {
    sink: Sink,
    room: Room,
    hasher: DigestHasher,
}

#[derive(Debug)]
enum Sink {
    Memory(BytesMut),
    File { file: File, path: Unfinished },
}

/// Bytes that are in use.
#[derive(Debug)]
struct Room {
    state: Arc<Mutex<ContentsState>>,
    bytes: u64,
}

impl Room {
    /// Takes more of at most `max`; false if there is none.
    fn take(&mut self, bytes: u64, max: u64) -> bool {
        let mut state = self.state.lock();
        let used = state.used.saturating_add(bytes);
        if used > max {
            return false;
        }
        state.used = used;
        self.bytes += bytes;
        true
    }

    /// The bytes, which stay in use.
    fn keep(mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.used = state.used.saturating_sub(self.bytes);
    }
}

/// A file that is removed unless it is moved to its place before.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.0.display(), %error, "an unfinished upload stays");
            }
            _ => {}
        }
    }
}

impl Contents {
    pub(super) fn memory(max: u64) -> Self {
        Self {
            folder: None,
            max,
            state: Arc::default(),
        }
    }

    /// The files in `folder`, of which `blobs` are there.
    pub(super) fn folder(
        folder: PathBuf,
        max: u64,
        blobs: BTreeMap<Digest, u64>,
        now: Uptime,
    ) -> Self {
        let used = blobs.values().sum();
        let stored = blobs.into_iter().map(|(digest, size)| {
            let stored = Stored {
                size,
                touched: now,
                content: None,
            };
            (digest, stored)
        });
        let state = ContentsState {
            stored: stored.collect(),
            used,
        };
        Self {
            folder: Some(folder),
            max,
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.state.lock().used
    }

    /// The length of a content, if it is there; it is then kept for a while.
    pub(super) fn length(&self, digest: &Digest, now: Uptime) -> Option<u64> {
        let mut state = self.state.lock();
        let stored = state.stored.get_mut(digest)?;
        stored.touched = now;
        Some(stored.size)
    }

    /// The contents that were last asked for before `before`.
    pub(super) fn older_than(&self, before: Uptime) -> Vec<Digest> {
        let state = self.state.lock();
        let old = state.stored.iter().filter(|(_, it)| it.touched < before);
        old.map(|(digest, _)| digest.clone()).collect()
    }

    /// `length` bytes of a content from `start` on.
    pub(super) async fn read(
        &self,
        digest: &Digest,
        start: u64,
        length: u64,
    ) -> Result<Body, RegistryError> {
        let stored = self.state.lock().stored.get(digest).cloned();
        let unknown = || RegistryError::new(ErrorCode::BlobUnknown, "the content is not there");
        let stored = stored.ok_or_else(unknown)?;
        if let Some(content) = stored.content {
            let end = (start + length).min(content.len() as u64) as usize;
            return Ok(content.slice(start as usize..end).into());
        }
        let Some(folder) = &self.folder else {
            return Err(unknown());
        };
        let mut file = File::open(blob_path(folder, digest)).await?;
        file.seek(SeekFrom::Start(start)).await?;
        Ok(stream(file.take(length)).with_length(length))
    }

    /// A whole content of at most `limit` bytes.
    pub(super) async fn bytes(
        &self,
        digest: &Digest,
        limit: usize,
    ) -> Result<Bytes, RegistryError> {
        let body = self.read(digest, 0, limit as u64).await?;
        let read = body.bytes(limit).await;
        read.map_err(|error| RegistryError::new(ErrorCode::Unknown, error.to_string()))
    }

    /// Begins to receive a content. `id` names it while it has no digest.
    pub(super) async fn begin(&self, id: &str) -> io::Result<Incoming> {
        let sink = match &self.folder {
            None => Sink::Memory(BytesMut::new()),
            Some(folder) => {
                let path = folder.join("uploads").join(id);
                // The file may be created although this is no longer waited for.
                let path = Unfinished(path);
                let file = File::create_new(&path.0).await?;
                Sink::File { file, path }
            }
        };
        Ok(Incoming {
            sink,
            room: Room {
                state: self.state.clone(),
                bytes: 0,
            },
            hasher: Algorithm::Sha256.hasher(),
        })
    }

    /// Appends to a content, if there is room.
    pub(super) async fn append(
        &self,
        incoming: &mut Incoming,
        part: &[u8],
    ) -> Result<(), RegistryError> {
        if !incoming.room.take(part.len() as u64, self.max) {
            let message = format!("the registry holds at most {} bytes", self.max);
            return Err(RegistryError::new(ErrorCode::Full, message));
        }
        match &mut incoming.sink {
            Sink::Memory(content) => content.extend_from_slice(part),
            Sink::File { file, .. } => file.write_all(part).await?,
        }
        incoming.hasher.update(part);
        Ok(())
    }

    /// Stores what was received, if it has this digest; otherwise drops it.
    pub(super) async fn commit(
        &self,
        incoming: Incoming,
        expected: &Digest,
        now: Uptime,
    ) -> Result<(), RegistryError> {
        let Incoming { sink, room, hasher } = incoming;
        let content = self.verified(sink, hasher, expected).await?;
        let size = room.keep();
        let mut state = self.state.lock();
        let stored = Stored {
            size,
            touched: now,
            content,
        };
        if state.stored.insert(expected.clone(), stored).is_some() {
            // It was there before, and counts once.
            state.used = state.used.saturating_sub(size);
        }
        Ok(())
    }

    /// Moves a content to its place after checking its digest; returns it if it is kept in memory.
    async fn verified(
        &self,
        sink: Sink,
        hasher: DigestHasher,
        expected: &Digest,
    ) -> Result<Option<Bytes>, RegistryError> {
        let streamed = hasher.finish();
        match sink {
            Sink::Memory(content) => {
                let content = content.freeze();
                if streamed == *expected || expected.matches(&content) {
                    Ok(Some(content))
                } else {
                    Err(mismatch(expected, &streamed))
                }
            }
            Sink::File { mut file, path } => {
                file.flush().await?;
                drop(file);
                let matches = streamed == *expected || {
                    expected.algorithm() != Algorithm::Sha256
                        && digest_of(&path.0, expected.algorithm()).await? == *expected
                };
                let folder = self.folder.as_deref().unwrap_or(Path::new("."));
                if !matches {
                    return Err(mismatch(expected, &streamed));
                }
                let place = blob_path(folder, expected);
                if let Some(parent) = place.parent() {
                    fs::create_dir_all(parent).await?;
                }
                fs::rename(&path.0, place).await?;
                Ok(None)
            }
        }
    }

    /// Removes a content.
    pub(super) async fn remove(&self, digest: &Digest) -> io::Result<u64> {
        let removed = {
            let mut state = self.state.lock();
            let removed = state.stored.remove(digest).map_or(0, |stored| stored.size);
            state.used = state.used.saturating_sub(removed);
            removed
        };
        if let Some(folder) = &self.folder {
            match fs::remove_file(blob_path(folder, digest)).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(removed)
    }
}

impl Incoming {
    pub(super) fn received(&self) -> u64 {
        self.room.bytes
    }
}

fn mismatch(expected: &Digest, found: &Digest) -> RegistryError {
    RegistryError::new(
        ErrorCode::DigestInvalid,
        format!("the content has the digest {found}, not the one that was announced"),
    )
    .about("digest", expected)
}

pub(super) fn blob_path(folder: &Path, digest: &Digest) -> PathBuf {
    let (algorithm, hex) = (digest.algorithm().name(), digest.hex());
    let place = folder.join("blobs").join(algorithm);
    place.join(hex.get(..2).unwrap_or(hex)).join(hex)
}

fn stream(reader: impl AsyncReadExt + Unpin + Send + 'static) -> Body {
    Body::from_stream(futures::stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        let mut chunk = BytesMut::with_capacity(CHUNK);
        match reader.read_buf(&mut chunk).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(chunk.freeze()), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

async fn digest_of(path: &Path, algorithm: Algorithm) -> io::Result<Digest> {
    let mut file = File::open(path).await?;
    let mut hasher = algorithm.hasher();
    let mut chunk = BytesMut::with_capacity(CHUNK);
    while file.read_buf(&mut chunk).await? > 0 {
        hasher.update(&chunk);
        chunk.clear();
    }
    Ok(hasher.finish())
}
