//! The folder of a server: a data folder that persists, or a private one that is removed at exit.
//!
//! Invariant: one process per data folder. The process locks a file in it, and the operating system
//! releases the lock when the process ends, however it ends.

pub(super) mod abandoned;

use std::{
    fs::{File, Permissions, TryLockError},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use neap_world::folder;

use super::private;
use crate::exit::{Exit, Failure, chain};

/// The folder of a running server.
pub(super) enum Folder {
    /// Named by the user.
    Data { path: PathBuf, _lock: File },
    /// Removed with its contents when this value is dropped.
    Private { folder: PrivateFolder, _lock: File },
}

/// A folder that is removed with everything in it. Pods choose how deep it nests, so the removal must not
/// recurse, which that of [`tempfile::TempDir`] does.
pub(super) struct PrivateFolder(PathBuf);

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if let Err(error) = folder::remove(&self.0) {
            let path = self.0.display();
            tracing::warn!(%path, %error, "cannot remove the private folder");
        }
    }
}

/// Why there is no usable folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("another neap up uses it{}", process_suffix(*process))]
    InUse { path: PathBuf, process: Option<u32> },
    #[error("cannot create or write it")]
    Unusable { path: PathBuf, source: io::Error },
    #[error("cannot create a private folder in {}", path.display())]
    NoTemporary { path: PathBuf, source: io::Error },
}

fn process_suffix(process: Option<u32>) -> String {
    process.map_or(String::new(), |id| format!(" (process {id})"))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = chain(&error);
        let (code, what, remedy) = match &error {
            Error::InUse { path, .. } => (
                "NT-UP-0003",
                format!("the data folder {} is in use", path.display()),
                "stop that process, or choose another folder with --data",
            ),
            Error::Unusable { path, .. } => (
                "NT-UP-0004",
                format!("cannot use the data folder {}", path.display()),
                "choose a folder with write permission with --data",
            ),
            Error::NoTemporary { .. } => (
                "NT-UP-0004",
                "cannot create a private folder".to_owned(),
                "choose a folder with --data, or set TMPDIR to a writable folder",
            ),
        };
        Self::new(code, Exit::Refused, &what, &why).remedy(remedy)
    }
}

impl Folder {
    /// Opens the data folder, or creates a private one if `data` is `None`.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, Error> {
        match data {
            Some(path) => Self::open_data(path),
            None => Self::create_private(),
        }
    }

    fn open_data(path: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable {
            path: path.to_owned(),
            source,
        };
        private::create_folder(path).map_err(unusable)?;
        // Absolute, so that the printed kubeconfig path works in any working directory.
        let path = path.canonicalize().map_err(unusable)?;
        let lock_path = path.join("neap.lock");
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = private::read(&lock_path).ok().flatten();
                let process = process.and_then(|text| text.trim().parse().ok());
                return Err(Error::InUse { path, process });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(unusable)?;
        Ok(Self::Data { path, _lock: lock })
    }

    fn create_private() -> Result<Self, Error> {
        let none = |source| Error::NoTemporary {
            path: std::env::temp_dir(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix(abandoned::PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(none)?;
        let folder = PrivateFolder(folder.keep());
        let lock = abandoned::lock(&folder.0).map_err(none)?;
        Ok(Self::Private {
            folder,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Data { path, .. } => path,
            Self::Private { folder, .. } => &folder.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folder_is_locked_by_one_server() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("a/b");
        let first = Folder::open(Some(&data)).unwrap();
        let second = Folder::open(Some(&data));
        assert!(
            matches!(second, Err(Error::InUse { process: Some(id), .. }) if id == std::process::id())
        );
        drop(first);
        assert!(Folder::open(Some(&data)).is_ok());
    }

    #[test]
    fn private_folder_is_private_and_removed_with_its_owner() {
        let folder = Folder::open(None).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn file_instead_of_a_folder_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("file");
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(
            Folder::open(Some(&path)),
            Err(Error::Unusable { .. })
        ));
    }
}
