//! The parts of an audit: the file that is added to, and those that are full.
//!
//! A full part is called after its first record, such as `audit.jsonl.000000000001`. The chain goes
//! on from one part to the next, so one that is missing shows.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{Head, record};

/// What is read at the end of a part to find its last record.
const END: u64 = 64 << 10;

/// What the part of `path` that begins with record `first` is called once it is full.
pub(super) fn full(path: &Path, first: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{first:012}"));
    name.into()
}

/// The full parts of the audit at `path`, by their first records, the oldest first.
pub(super) fn list(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let first = name.to_str().and_then(|name| {
            let number = name.strip_prefix(&*own)?.strip_prefix('.')?;
            let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| number.parse().ok()).flatten()
        });
        if let Some(first) = first {
            parts.push((first, entry.path()));
        }
    }
    parts.sort_unstable();
    Ok(parts)
}

/// Where the chain stands after the full part at `path`, as its last record says; nothing if that is
/// no record.
pub(super) fn end_of(path: &Path) -> io::Result<Option<Head>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let (mut take, mut text) = (END, Vec::new());
    loop {
        text.clear();
        file.seek(SeekFrom::Start(length.saturating_sub(take)))?;
        file.by_ref().take(take).read_to_end(&mut text)?;
        let Some(lines) = text.strip_suffix(b"\n") else {
            return Ok(None);
        };
        let begins = lines.iter().rposition(|byte| *byte == b'\n');
        if begins.is_none() && take < length {
            take = take.saturating_mul(2);
            continue;
        }
        let line = &lines[begins.map_or(0, |at| at + 1)..];
        return Ok(str::from_utf8(line).ok().and_then(record::head_after));
    }
}
