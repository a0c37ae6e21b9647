//! Folders of this machine.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags},
    io::Errno,
};

/// Entries that are read from a directory before they are removed.
const ENTRIES_AT_ONCE: usize = 1024;

/// Removes a folder and everything in it; a folder that does not exist is no error.
///
/// Pods choose how deep their folders nest. A directory inside another is therefore moved up into
/// `folder` before it is emptied: no recursion, two descriptors, no path that is longer than the system
/// allows, and no `..`, which a process that still runs could lead elsewhere.
pub fn remove(folder: &Path) -> io::Result<()> {
    let root = match open(CWD, folder) {
        Err(Errno::NOENT) => return Ok(()),
        root => root?,
    };
    let (mut directories, mut moved) = (Vec::new(), 0_u64);
    loop {
        let Some(name) = directories.pop() else {
            directories = remove_files(&root)?;
            if directories.is_empty() {
                break;
            }
            continue;
        };
        let directory = open_writable(&root, &name)?;
        loop {
            let inner = remove_files(&directory)?;
            if inner.is_empty() {
                break;
            }
            for child in inner {
                directories.push(move_up(&directory, &child, &root, &mut moved)?);
            }
        }
        fs::unlinkat(&root, &*name, AtFlags::REMOVEDIR)?;
    }
    std::fs::remove_dir(folder)
}

fn open<P: rustix::path::Arg>(
    parent: impl std::os::fd::AsFd,
    name: P,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(parent, name, flags, Mode::empty())
}

/// Opens a directory whose entries can be removed, also if its owner made it read-only.
fn open_writable(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let directory = match open(parent, name) {
        Err(Errno::ACCESS) => {
            fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            open(parent, name)?
        }
        directory => directory?,
    };
    let mode = Mode::from_raw_mode(fs::fstat(&directory)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        fs::fchmod(&directory, mode | Mode::RWXU)?;
    }
    Ok(directory)
}

/// Removes everything in `directory` that is no directory; returns the names of some of the directories in
/// it, and none only if there are none.
fn remove_files(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    loop {
        let mut entries = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                entries.push((name.to_owned(), entry.file_type()));
            }
            if entries.len() == ENTRIES_AT_ONCE {
                break;
            }
        }
        let mut directories = Vec::new();
        let empty = entries.is_empty();
        for (name, kind) in entries {
            if is_directory(directory, &name, kind)? {
                directories.push(name);
            } else {
                fs::unlinkat(directory, &*name, AtFlags::empty())?;
            }
        }
        if empty || !directories.is_empty() {
            return Ok(directories);
        }
    }
}

fn is_directory(parent: &OwnedFd, name: &CStr, kind: FileType) -> io::Result<bool> {
    // Not every file system says what an entry is.
    let kind = if kind == FileType::Unknown {
        let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        FileType::from_raw_mode(stat.st_mode)
    } else {
        kind
    };
    Ok(kind == FileType::Directory)
}

/// Moves a directory into `root` under a name that is free there; returns the name.
fn move_up(from: &OwnedFd, name: &CStr, root: &OwnedFd, moved: &mut u64) -> io::Result<CString> {
    // The parent entry inside a directory changes with its place, which needs write access to it.
    drop(open_writable(from, name)?);
    loop {
        *moved += 1;
        let to = CString::new(format!(".removing-{moved}"))?;
        match fs::renameat_with(from, name, root, &*to, fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return Ok(done.map(|()| to)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{create_dir_all, set_permissions, write},
        os::unix::fs::{PermissionsExt, symlink},
        thread,
    };

    use super::*;

    #[test]
    fn a_missing_folder_is_no_error_and_a_file_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a");
        remove(&folder).unwrap();
        create_dir_all(folder.join("b")).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
        write(&folder, "").unwrap();
        remove(&folder).unwrap_err();
    }

    #[test]
    fn a_folder_of_any_depth_is_removed_with_a_small_stack() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("deep");
        create_dir_all(&folder).unwrap();
        let mut inner = open(CWD, &folder).unwrap();
        for _ in 0..14_000 {
            fs::mkdirat(&inner, "d", Mode::RWXU).unwrap();
            inner = open(&inner, "d").unwrap();
        }
        drop(inner);
        let (path, small) = (folder.clone(), thread::Builder::new().stack_size(64 * 1024));
        small
            .spawn(move || remove(&path))
            .unwrap()
            .join()
            .unwrap()
            .unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn wide_read_only_and_oddly_named_folders_are_removed_and_links_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, other) = (parent.path().join("a"), parent.path().join("other"));
        create_dir_all(&other).unwrap();
        write(other.join("kept"), "x").unwrap();
        for name in 0..3 * ENTRIES_AT_ONCE {
            create_dir_all(folder.join(format!("{name}/inner"))).unwrap();
            write(folder.join(format!("{name}/file")), "x").unwrap();
        }
        create_dir_all(folder.join(".removing-1/.removing-2")).unwrap();
        create_dir_all(folder.join("locked/inner")).unwrap();
        write(folder.join("locked/inner/file"), "x").unwrap();
        for locked in ["locked/inner", "locked"] {
            set_permissions(folder.join(locked), PermissionsExt::from_mode(0o500)).unwrap();
        }
        symlink(&other, folder.join("0/inner/link")).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
        assert!(other.join("kept").exists());
    }
}
