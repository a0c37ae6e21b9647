//! Writes a layer.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use super::Error;
use crate::oci::digest::{Digest, DigestHasher, sha256};

/// The longest name that fits into a header without an extension, without its prefix.
const BLOCK: usize = 512;
/// The byte of gzip that names no operating system.
const UNKNOWN_SYSTEM: u8 = 255;

/// A file to be stored, or a folder where it has no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerFile {
    /// The name, without a slash at either end.
    pub name: String,
    /// The content; none for a folder.
    pub content: Option<Vec<u8>>,
    /// Permissions.
    pub mode: u32,
    /// Seconds since 1970.
    pub mtime: i64,
}

/// A layer ready to be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerBlob {
    /// The compressed bytes.
    pub bytes: Bytes,
    /// Their digest.
    pub digest: Digest,
    /// The digest of the archive before compression, which configurations name.
    pub diff_id: Digest,
}

/// Packs files in the given order. The same files give the same bytes: owners, names of owners and the time
/// of compression are not stored.
pub fn write(files: &[LayerFile]) -> Result<LayerBlob, Error> {
    let gzip = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
    let mut archive = Hashed {
        inner: gzip.write(Vec::new(), Compression::default()),
        hasher: DigestHasher::sha256(),
    };
    for file in files {
        append(&mut archive, file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => Error::Name(file.name.clone()),
            _ => Error::Damaged(error),
        })?;
    }
    archive.write_all(&[0; 2 * BLOCK]).map_err(Error::Damaged)?;
    let diff_id = archive.hasher.finish();
    let bytes = Bytes::from(archive.inner.finish().map_err(Error::Damaged)?);
    let digest = sha256(&bytes);
    Ok(LayerBlob {
        bytes,
        digest,
        diff_id,
    })
}

fn append(archive: &mut impl Write, file: &LayerFile) -> io::Result<()> {
    let mut header = header(file);
    if set_name(&mut header, &file.name).is_err() {
        extension(archive, &file.name)?;
        // The name that readers without extensions show.
        let short = file.name.rsplit('/').next().unwrap_or_default();
        let short: String = short.chars().filter(char::is_ascii).take(90).collect();
        set_name(&mut header, &short)?;
    }
    header.set_cksum();
    archive.write_all(header.as_bytes())?;
    let content = file.content.as_deref().unwrap_or_default();
    archive.write_all(content)?;
    pad(archive, content.len())
}

fn header(file: &LayerFile) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(match file.content {
        Some(_) => EntryType::Regular,
        None => EntryType::Directory,
    });
    let size = file.content.as_ref().map_or(0, Vec::len);
    header.set_size(size as u64);
    header.set_mode(file.mode);
    header.set_mtime(file.mtime.max(0).unsigned_abs());
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// An extended header with the name.
fn extension(archive: &mut impl Write, name: &str) -> io::Result<()> {
    let record = record("path", name);
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.set_size(record.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    set_name(&mut header, "PaxHeaders.0/name")?;
    header.set_cksum();
    archive.write_all(header.as_bytes())?;
    archive.write_all(record.as_bytes())?;
    pad(archive, record.len())
}

/// `LENGTH KEY=VALUE\n`, whose length counts itself.
fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

fn set_name(header: &mut Header, name: &str) -> io::Result<()> {
    if name.is_empty() || !name.is_ascii() || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Not `Header::set_path`: it depends on the paths of the platform that this runs on.
    let Some(ustar) = header.as_ustar_mut() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let (prefix, rest) = if name.len() <= ustar.name.len() {
        ("", name)
    } else {
        let fits = |at: &usize| *at <= 155 && name.len() - at - 1 <= 100;
        let mut slashes = name.match_indices('/').map(|(at, _)| at);
        let at = slashes.find(fits);
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        (&name[..at], &name[at + 1..])
    };
    ustar.name[..rest.len()].copy_from_slice(rest.as_bytes());
    ustar.prefix[..prefix.len()].copy_from_slice(prefix.as_bytes());
    Ok(())
}

fn pad(archive: &mut impl Write, length: usize) -> io::Result<()> {
    let padding = length.next_multiple_of(BLOCK) - length;
    archive.write_all(&[0; BLOCK][..padding])
}

struct Hashed<W> {
    inner: W,
    hasher: DigestHasher,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(part)?;
        self.hasher.update(&part[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
