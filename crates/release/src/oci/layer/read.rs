//! Reads the files of a layer that are wanted.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read},
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tar::{Archive, EntryType};

use super::Error;

/// Bounds on what is read of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The size of the layer as it was transferred; what it may unpack to follows from it.
    pub compressed: u64,
    /// Entries, wanted or not.
    pub entries: u64,
    /// One wanted file.
    pub file: u64,
    /// All wanted files together.
    pub files: u64,
}

/// Text compresses to a hundredth at best; deflate's limit is a thousandth.
const MAX_RATIO: u64 = 200;
/// Small layers may unpack to this much whatever the ratio.
const ALWAYS_ALLOWED: u64 = 256 << 20;
/// Names and extended headers.
const MAX_HEADER: u64 = 1 << 20;

impl Limits {
    /// For manifests: files that people write.
    pub fn for_manifests(compressed: u64) -> Self {
        Self {
            compressed,
            entries: 1_000_000,
            file: 16 << 20,
            files: 256 << 20,
        }
    }

    /// For programs that are extracted one at a time.
    pub fn for_programs(compressed: u64) -> Self {
        Self {
            file: 2 << 30,
            files: 4 << 30,
            ..Self::for_manifests(compressed)
        }
    }

    fn unpacked(&self) -> u64 {
        ALWAYS_ALLOWED.max(self.compressed.saturating_mul(MAX_RATIO))
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A second name of a file.
    HardLink,
    /// The mark that lower layers' file is deleted.
    Whiteout,
    /// A device, a pipe.
    Other,
}

/// What is known of an entry before its content is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHead {
    /// The name, without a leading `/` or `./`.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// The size of its content.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Permissions.
    pub mode: u32,
    /// Where a link leads.
    pub link: Option<String>,
}

/// A wanted entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEntry {
    /// Its head.
    pub head: EntryHead,
    /// Its content; empty unless it is a file.
    pub content: Vec<u8>,
}

/// The entries of the layer that `wanted` chooses, in their order.
pub fn read(
    layer: impl Read,
    limits: Limits,
    mut wanted: impl FnMut(&EntryHead) -> bool,
) -> Result<Vec<LayerEntry>, Error> {
    let unpacked = Bounded {
        inner: decompressed(BufReader::with_capacity(64 << 10, layer))?,
        left: limits.unpacked(),
        exceeded: false,
    };
    let mut archive = Archive::new(unpacked);
    let mut reader = Reader {
        limits,
        entries: 0,
        bytes: 0,
        pending: Pending::default(),
    };
    let entries = archive.entries().map_err(Error::Damaged)?.raw(true);
    let mut found = Vec::new();
    for entry in entries {
        let mut entry = entry.map_err(|error| limits.failure(error))?;
        let Some(head) = reader.head(&mut entry)? else {
            continue;
        };
        if wanted(&head) {
            let content = reader.content(&head, &mut entry)?;
            found.push(LayerEntry { head, content });
        }
    }
    // The end of the compression has a checksum of what came before.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(|error| limits.failure(error))?;
    Ok(found)
}

/// Headers that precede the entry that they are about.
#[derive(Default)]
struct Pending {
    name: Option<String>,
    link: Option<String>,
    pax: BTreeMap<String, String>,
}

struct Reader {
    limits: Limits,
    entries: u64,
    bytes: u64,
    pending: Pending,
}

impl Reader {
    /// The head of an entry; none if it is a header of the next one.
    fn head<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>) -> Result<Option<EntryHead>, Error> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(Error::TooManyEntries(self.limits.entries));
        }
        let header = entry.header().clone();
        let size = header.entry_size().map_err(Error::Damaged)?;
        match header.entry_type() {
            EntryType::GNULongName => {
                self.pending.name = Some(self.text(entry, size)?);
                return Ok(None);
            }
            EntryType::GNULongLink => {
                self.pending.link = Some(self.text(entry, size)?);
                return Ok(None);
            }
            EntryType::XHeader => {
                let content = self.header(entry, size)?;
                for extension in tar::PaxExtensions::new(&content) {
                    let extension = extension.map_err(Error::Damaged)?;
                    let key = String::from_utf8_lossy(extension.key_bytes()).into_owned();
                    let value = String::from_utf8_lossy(extension.value_bytes()).into_owned();
                    self.pending.pax.insert(key, value);
                }
                return Ok(None);
            }
            EntryType::XGlobalHeader => {
                self.header(entry, size)?;
                return Ok(None);
            }
            _ => {}
        }
        let pending = std::mem::take(&mut self.pending);
        let pax = |key: &str| pending.pax.get(key).cloned();
        if pax("size").is_some_and(|stated| stated.parse() != Ok(size)) {
            let message = "an extended header states another size than its entry has";
            return Err(Error::Damaged(io::Error::other(message)));
        }
        let stored = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let name = pax("path").or(pending.name).unwrap_or(stored);
        let stored = header.link_name_bytes();
        let stored = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let name = clean(&name)?;
        let mtime = pax("mtime").and_then(|text| text.parse::<f64>().ok());
        let mtime = match mtime {
            Some(seconds) => seconds.floor() as i64,
            None => header.mtime().map_err(Error::Damaged)? as i64,
        };
        Ok(Some(EntryHead {
            kind: kind(&header, &name),
            size,
            mtime,
            mode: header.mode().map_err(Error::Damaged)? & 0o7777,
            link: pax("linkpath").or(pending.link).or(stored),
            name,
        }))
    }

    fn header<R: Read>(&self, entry: &mut R, size: u64) -> Result<Vec<u8>, Error> {
        if size > MAX_HEADER {
            return Err(Error::HeaderTooLarge(size));
        }
        self.all(entry, size)
    }

    fn text<R: Read>(&self, entry: &mut R, size: u64) -> Result<String, Error> {
        let content = self.header(entry, size)?;
        let text = String::from_utf8_lossy(&content);
        Ok(text.trim_end_matches('\0').to_owned())
    }

    fn content<R: Read>(&mut self, head: &EntryHead, entry: &mut R) -> Result<Vec<u8>, Error> {
        if head.kind != EntryKind::File {
            return Ok(Vec::new());
        }
        if head.size > self.limits.file {
            return Err(Error::FileTooLarge {
                name: head.name.clone(),
                size: head.size,
                limit: self.limits.file,
            });
        }
        self.bytes = self.bytes.saturating_add(head.size);
        if self.bytes > self.limits.files {
            return Err(Error::FilesTooLarge(self.limits.files));
        }
        self.all(entry, head.size)
    }

    /// All bytes of an entry. Memory grows with what arrives, not with what the header claims.
    fn all<R: Read>(&self, entry: &mut R, size: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::with_capacity(size.min(1 << 20) as usize);
        let read = entry.take(size).read_to_end(&mut content);
        read.map_err(|error| self.limits.failure(error))?;
        if content.len() as u64 != size {
            return Err(Error::Damaged(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(content)
    }
}

impl Limits {
    fn failure(&self, error: io::Error) -> Error {
        if error
            .get_ref()
            .is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooMuch>)
        {
            return Error::Bomb {
                limit: self.unpacked(),
                compressed: self.compressed,
            };
        }
        Error::Damaged(error)
    }
}

fn kind(header: &tar::Header, name: &str) -> EntryKind {
    let file_name = name.rsplit('/').next().unwrap_or_default();
    match header.entry_type() {
        _ if file_name.starts_with(".wh.") => EntryKind::Whiteout,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => EntryKind::File,
        EntryType::Directory => EntryKind::Directory,
        EntryType::Symlink => EntryKind::Symlink,
        EntryType::Link => EntryKind::HardLink,
        _ => EntryKind::Other,
    }
}

/// The name without what leads nowhere; refused if it leads out of the image.
fn clean(name: &str) -> Result<String, Error> {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<_> = parts.collect();
    if parts.contains(&"..") || name.contains('\0') {
        return Err(Error::Escape(name.to_owned()));
    }
    Ok(parts.join("/"))
}

/// The content, whatever its compression: media types are often wrong, the first bytes are not.
fn decompressed<'a>(mut layer: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, Error> {
    let start = layer.fill_buf().map_err(Error::Damaged)?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(layer)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = StreamingDecoder::new(layer);
            Box::new(decoder.map_err(|error| Error::Damaged(io::Error::other(error.to_string())))?)
        }
        _ => Box::new(layer),
    })
}

/// Ends with an error where a limit is exceeded, not with an end that looks like that of the archive.
struct Bounded<R> {
    inner: R,
    left: u64,
    exceeded: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the layer unpacks to too much")]
struct TooMuch;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.exceeded {
            return Err(io::Error::other(TooMuch));
        }
        let count = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(count as u64) else {
            self.exceeded = true;
            return Err(io::Error::other(TooMuch));
        };
        self.left = left;
        Ok(count)
    }
}
