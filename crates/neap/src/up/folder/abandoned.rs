//! Removes private folders of servers that were killed.
//!
//! A private folder contains a file that its server has locked; the operating system releases the lock
//! when the process ends. Invariant: a folder is removed only if this user owns it, `neap up` created it
//! and its server has ended.

use std::{
    fs::{self, DirEntry, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use neap_world::folder;
use rustix::process::geteuid;

/// Name prefix of private folders.
pub(super) const PREFIX: &str = "neap-";
/// Lock file of private folders. Data folders have none, whatever their name.
const LOCK: &str = "private.lock";
/// Lock file of data folders.
const DATA_LOCK: &str = "neap.lock";

/// Marks a private folder as in use for as long as the returned file is open.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    // Locked before it gets its final name, so that an unlocked file means a server that has ended.
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

/// Removes the private folders of killed servers in `temporary`.
pub(in crate::up) fn remove_all(temporary: &Path) {
    remove_each(temporary, remove);
}

/// A folder that cannot be removed is reported and left; the others are removed all the same.
fn remove_each(temporary: &Path, remove: impl Fn(&Path) -> io::Result<bool>) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(is_private_folder) {
        let path = entry.path();
        match remove(&path) {
            Ok(true) => {
                let path = path.display();
                tracing::info!(%path, "removed the private folder of a killed neap up");
            }
            Ok(false) => {}
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "cannot remove the private folder of a killed neap up");
            }
        }
    }
}

/// Whether the entry looks like a private folder of this user. Symbolic links do not.
fn is_private_folder(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let named = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let owned = |it: fs::Metadata| it.is_dir() && it.uid() == geteuid().as_raw();
    named && entry.metadata().is_ok_and(owned)
}

/// Removes the folder if its server has ended; returns whether it was removed.
fn remove(folder: &Path) -> io::Result<bool> {
    let lock = folder.join(LOCK);
    let Ok(file) = File::open(&lock) else {
        return Ok(false);
    };
    if file.try_lock().is_err() || folder.join(DATA_LOCK).exists() {
        return Ok(false);
    }
    // The lock file is removed last, so that the next start can finish if this process is killed.
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path() == lock {
            continue;
        }
        if entry.file_type()?.is_dir() {
            folder::remove(&entry.path())?;
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
    fn folders_of_ended_servers_are_removed_and_those_in_use_stay() {
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
    fn a_folder_that_cannot_be_removed_is_left_and_the_others_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let names = ["neap-a", "neap-b", "neap-c"];
        for name in names {
            drop(lock(&folder(parent.path(), name)).unwrap());
        }
        remove_each(parent.path(), |path| {
            if path.ends_with("neap-b") {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            remove(path)
        });
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [false, true, false]);
    }

    #[test]
    fn a_deep_folder_of_a_killed_server_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dead = folder(parent.path(), "neap-dead");
        let mut inner = dead.join("node");
        let volume = File::open(&inner).unwrap();
        let mut place = volume.try_clone().unwrap();
        for _ in 0..14_000 {
            rustix::fs::mkdirat(&place, "d", rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            place = rustix::fs::openat(&place, "d", flags, rustix::fs::Mode::empty())
                .unwrap()
                .into();
        }
        inner.push("d");
        assert!(inner.exists());
        drop(lock(&dead).unwrap());
        let path = parent.path().to_owned();
        let small = std::thread::Builder::new().stack_size(128 * 1024);
        small
            .spawn(move || remove_all(&path))
            .unwrap()
            .join()
            .unwrap();
        assert!(!dead.exists());
    }

    #[test]
    fn other_folders_are_not_removed() {
        let parent = tempfile::tempdir().unwrap();
        let users = folder(parent.path(), "neap-notes");
        let data = folder(parent.path(), "neap-data");
        fs::write(data.join(DATA_LOCK), "1").unwrap();
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
