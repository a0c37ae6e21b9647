//! Private folders of servers that were killed, and so could not remove them.
//!
//! A private folder holds a file that its server has locked; the system drops the lock with the
//! process. The invariant: nothing is removed but a folder that this user owns, that was made here
//! and whose server is gone.

use std::{
    fs::{self, DirEntry, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::process::geteuid;

/// What private folders are called, up to where they differ.
pub(super) const PREFIX: &str = "neap-";
/// In private folders alone: a data folder may be called anything.
const LOCK: &str = "private.lock";
/// In data folders alone.
const DATA: &str = "neap.lock";

/// Says that a private folder is in use, as long as the file is open.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    // Locked before it gets its name: whoever finds an unlocked one finds a dead server.
    let unready = folder.join("private.new");
    let file = File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&unready)?;
    file.try_lock()?;
    fs::rename(&unready, folder.join(LOCK))?;
    Ok(file)
}

/// Removes what killed servers left in the folder for temporary files.
pub(in crate::up) fn remove_all(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(ours) {
        let path = entry.path();
        match remove(&path) {
            Ok(true) => {
                let path = path.display();
                tracing::info!(%path, "removed what a killed neap up left");
            }
            Ok(false) => {}
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "what a killed neap up left cannot be removed");
            }
        }
    }
}

/// Whether it looks like a private folder of this user. A link to one does not.
fn ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let named = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let owned = |it: fs::Metadata| it.is_dir() && it.uid() == geteuid().as_raw();
    named && entry.metadata().is_ok_and(owned)
}

/// Removes the folder if its server is gone; says whether it was.
fn remove(folder: &Path) -> io::Result<bool> {
    let lock = folder.join(LOCK);
    let Ok(file) = File::open(&lock) else {
        return Ok(false);
    };
    if file.try_lock().is_err() || folder.join(DATA).exists() {
        return Ok(false);
    }
    // The lock goes last: if this is killed too, the next one goes on.
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path() == lock {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(&lock)?;
    fs::remove_dir(folder)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(parent: &Path, name: &str) -> std::path::PathBuf {
        let path = parent.join(name);
        fs::create_dir_all(path.join("node/volumes")).unwrap();
        fs::write(path.join("node/volumes/file"), "x").unwrap();
        path
    }

    #[test]
    fn what_a_dead_server_left_goes_and_what_a_live_one_has_stays() {
        let parent = tempfile::tempdir().unwrap();
        let dead = folder(parent.path(), "neap-dead");
        drop(lock(&dead).unwrap());
        let living = folder(parent.path(), "neap-living");
        let held = lock(&living).unwrap();
        remove_all(parent.path());
        assert!(!dead.exists());
        assert!(living.join("node/volumes/file").exists());
        drop(held);
        remove_all(parent.path());
        assert!(!living.exists());
    }

    #[test]
    fn nothing_else_is_touched() {
        let parent = tempfile::tempdir().unwrap();
        let users = folder(parent.path(), "neap-notes");
        let data = folder(parent.path(), "neap-data");
        fs::write(data.join(DATA), "1").unwrap();
        drop(lock(&data).unwrap());
        let elsewhere = folder(parent.path(), "other");
        drop(lock(&elsewhere).unwrap());
        symlink(&elsewhere, parent.path().join("neap-link")).unwrap();
        let dead = folder(parent.path(), "neap-dead");
        drop(lock(&dead).unwrap());
        symlink(&users, dead.join("link")).unwrap();
        remove_all(parent.path());
        assert!(!dead.exists());
        for kept in [users, data, elsewhere] {
            assert!(
                kept.join("node/volumes/file").exists(),
                "{}",
                kept.display()
            );
        }
    }
}
