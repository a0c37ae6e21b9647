//! The parts of an audit: the file that is appended to, and the full ones.
//!
//! A full part is named after its first record, such as `audit.jsonl.000000000001`. The chain continues
//! from one part to the next, so a missing part is detected.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{ChainHead, record};

/// The number of bytes that are read first at the end of a part to find its last record.
const TAIL_BYTES: u64 = 64 << 10;

/// The index of the first record of a full part, and its path.
pub(super) type Part = (u64, PathBuf);

/// The path of the full part of `path` that begins with record `first`.
pub(super) fn full_part_path(path: &Path, first: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{first:012}"));
    name.into()
}

/// The folder that the parts of `path` are in.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The full parts of the audit at `path`, the oldest first.
pub(super) fn list(path: &Path) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder(path))? {
        let entry = entry?;
        if let Some(first) = first_of(path, &entry.file_name()) {
            parts.push((first, entry.path()));
        }
    }
    parts.sort_unstable();
    Ok(parts)
}

/// The index of the first record of the part of `path` with this file name; none if it is not a part,
/// such as a copy that a user named `audit.jsonl.1`.
fn first_of(path: &Path, name: &OsStr) -> Option<u64> {
    let number = name.to_string_lossy();
    let (_, number) = number.rsplit_once('.')?;
    let first = number.parse().ok().filter(|first| *first > 0)?;
    (full_part_path(path, first).file_name() == Some(name)).then_some(first)
}

/// The head of the chain after the full part at `path`, as stated by its last record; none if the last
/// line is not a record.
pub(super) fn head_of(path: &Path) -> io::Result<Option<ChainHead>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let (mut take, mut text) = (TAIL_BYTES, Vec::new());
    loop {
        text.clear();
        file.seek(SeekFrom::Start(length.saturating_sub(take)))?;
        file.by_ref().take(take).read_to_end(&mut text)?;
        let Some(lines) = text.strip_suffix(b"\n") else {
            return Ok(None);
        };
        let line_break = lines.iter().rposition(|byte| *byte == b'\n');
        if line_break.is_none() && take < length {
            take = take.saturating_mul(2);
            continue;
        }
        let line = &lines[line_break.map_or(0, |at| at + 1)..];
        return Ok(str::from_utf8(line).ok().and_then(record::head_after));
    }
}
