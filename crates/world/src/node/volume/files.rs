//! Writes the files of a volume so that they change all at once.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, OpenOptions, Permissions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use super::Files;
use crate::folder as folders;

/// The link to the folder that counts.
const NOW: &str = "..data";
/// The link that takes its place.
const NEXT: &str = "..data_next";

/// Makes the files of `folder` these, and says whether that changed anything.
///
/// A crash at any point leaves the old files or the new ones in view; what it leaves lying about is
/// cleared by the next call.
pub fn write(folder: &Path, files: &Files) -> io::Result<bool> {
    fs::create_dir_all(folder)?;
    let state = OsString::from(state(files));
    let now = folder.join(NOW);
    let before = fs::read_link(&now).ok().map(PathBuf::into_os_string);
    let changes = before.as_ref() != Some(&state);
    if changes {
        fill(&folder.join(&state), files)?;
        let next = folder.join(NEXT);
        let _ = fs::remove_file(&next);
        symlink(&state, &next)?;
        fs::rename(&next, &now)?;
    }
    let wanted = show(folder, files)?;
    clear(folder, &state, &wanted)?;
    Ok(changes)
}

/// A name for these files with this content.
fn state(files: &Files) -> String {
    let mut hasher = DefaultHasher::new();
    for (path, text) in files {
        (path, &text.bytes, text.mode).hash(&mut hasher);
    }
    format!("..{:016x}", hasher.finish())
}

fn fill(folder: &Path, files: &Files) -> io::Result<()> {
    // What is there may be half of it.
    folders::remove(folder)?;
    fs::create_dir_all(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        put_private(&path, &text.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(text.mode))?;
    }
    Ok(())
}

/// Nobody else reads it at any time, whatever may be read of it in the end.
fn put_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// A folder that only its owner can look into.
pub(in crate::node) fn folder_of_ones_own(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Makes `text` the content of the file at `path`, if it is not. The file stays the same one, as
/// containers hold on to it, and is never seen empty.
pub(in crate::node) fn put_text(path: &Path, text: &str) -> io::Result<()> {
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

/// A link for each name at the top, through the one that turns.
fn show(folder: &Path, files: &Files) -> io::Result<BTreeSet<OsString>> {
    let first = |path: &Path| path.iter().next().map(OsStr::to_owned);
    let names: BTreeSet<_> = files.keys().filter_map(|path| first(path)).collect();
    for name in &names {
        let (link, target) = (folder.join(name), Path::new(NOW).join(name));
        if fs::read_link(&link).ok().as_ref() != Some(&target) {
            symlink(target, link)?;
        }
    }
    Ok(names)
}

/// Removes what belongs to no file and to no state that counts.
fn clear(folder: &Path, state: &OsStr, names: &BTreeSet<OsString>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        if name == NOW || name == state || names.contains(&name) {
            continue;
        }
        if fs::symlink_metadata(&path)?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
