//! Writes the files of a volume atomically.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use neap_kit::hash::stable_hash;

use super::VolumeFiles;
use crate::folder as folders;

/// The link to the current folder.
const CURRENT_LINK: &str = "..data";
/// The link that replaces it.
const NEXT_LINK: &str = "..data_next";

/// Replaces the files of `folder`, and returns whether anything changed.
///
/// A crash at any point leaves the old files or the new ones visible; leftovers are removed by the
/// next call.
pub fn write(folder: &Path, files: &VolumeFiles) -> io::Result<bool> {
    fs::create_dir_all(folder)?;
    let state = OsString::from(state(files));
    let now = folder.join(CURRENT_LINK);
    let before = fs::read_link(&now).ok().map(PathBuf::into_os_string);
    let changes = before.as_ref() != Some(&state);
    if changes {
        fill(&folder.join(&state), files)?;
        let next = folder.join(NEXT_LINK);
        let _ = fs::remove_file(&next);
        symlink(&state, &next)?;
        fs::rename(&next, &now)?;
    }
    let wanted = show(folder, files)?;
    clear(folder, &state, &wanted)?;
    Ok(changes)
}

/// A name derived from these files and their content.
fn state(files: &VolumeFiles) -> String {
    let modes: Vec<_> = files.values().map(|text| text.mode.to_le_bytes()).collect();
    let parts = files.iter().zip(&modes).flat_map(|((path, text), mode)| {
        let path = path.as_os_str().as_encoded_bytes();
        [path, &text.bytes[..], &mode[..]]
    });
    format!("..{:016x}", stable_hash(parts))
}

fn fill(folder: &Path, files: &VolumeFiles) -> io::Result<()> {
    // An existing folder may be incomplete.
    folders::remove(folder)?;
    fs::create_dir_all(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write_private(&path, &text.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(text.mode))?;
    }
    Ok(())
}

/// Creates a file that no other user can read until its final mode is set.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Creates a folder that only its owner can read.
pub(in crate::node) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Writes `text` to the file at `path`, if it differs. The inode stays the same, because it is
/// bind-mounted into containers, and the file is never empty.
pub(in crate::node) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Creates a link for each top-level name, through the link to the current folder.
fn show(folder: &Path, files: &VolumeFiles) -> io::Result<BTreeSet<OsString>> {
    let first = |path: &Path| path.iter().next().map(OsStr::to_owned);
    let names: BTreeSet<_> = files.keys().filter_map(|path| first(path)).collect();
    for name in &names {
        let (link, target) = (folder.join(name), Path::new(CURRENT_LINK).join(name));
        if fs::read_link(&link).ok().as_ref() != Some(&target) {
            symlink(target, link)?;
        }
    }
    Ok(names)
}

/// Removes entries that are neither files of the volume nor the current folder.
fn clear(folder: &Path, state: &OsStr, names: &BTreeSet<OsString>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        if name == CURRENT_LINK || name == state || names.contains(&name) {
            continue;
        }
        if fs::symlink_metadata(&path)?.is_dir() {
            folders::remove(&path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
