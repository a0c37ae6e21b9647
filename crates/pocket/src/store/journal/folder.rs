//! The real file layer: a folder of the operating system, locked for one process.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{Disk, DiskFile, Error};

const LOCK: &str = "lock";

/// A folder on the local disk. Objects may be secrets, so only its owner may read it.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
    /// Held open for its lock, which ends with this value or with the process.
    _lock: File,
}

impl FolderDisk {
    /// Opens the folder, creating it if it is missing, and locks it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = folder.into();
        create_folder(&folder).map_err(Error::io_at("create", folder.clone()))?;
        let path = folder.join(LOCK);
        let lock = private()
            .create(true)
            .open(&path)
            .map_err(Error::io_at("open", path.clone()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: folder }),
            Err(TryLockError::Error(cause)) => Err(Error::io_at("lock", path)(cause)),
        }
    }
}

/// The new folder's own name must survive a power cut as well, hence the sync of its parents.
fn create_folder(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|f| !f.exists()).collect();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    for created in missing.into_iter().filter(|f| !f.as_os_str().is_empty()) {
        let parent = created.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).truncate(false).mode(0o600);
    options
}

fn path(folder: &Path, name: &str) -> PathBuf {
    if name.is_empty() {
        folder.to_owned()
    } else {
        folder.join(name)
    }
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        // A name that is not valid UTF-8 is not one of the journal's.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// A folder that is read and not changed: it takes no lock, and refuses all writes.
#[derive(Debug)]
pub(super) struct FolderView(PathBuf);

impl FolderView {
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }
}

impl Disk for FolderView {
    fn path(&self, name: &str) -> PathBuf {
        path(&self.0, name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        list(&self.0)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn open(&self, _name: &str) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for FolderDisk {
    fn path(&self, name: &str) -> PathBuf {
        path(&self.folder, name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        list(&self.folder)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = private()
            .create(true)
            .truncate(true)
            .open(self.path(name))?;
        Ok(Box::new(LocalFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(LocalFile(private().open(self.path(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

#[derive(Debug)]
struct LocalFile(File);

impl DiskFile for LocalFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
