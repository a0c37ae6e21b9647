//! Where a server keeps its files: a data folder that stays, or a private one that does not.
//!
//! The invariant: one process per data folder. A lock on a file in it says so, and the system
//! drops the lock with the process, however it ends.

pub(super) mod abandoned;

use std::{
    fs::{File, Permissions, TryLockError},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::private;
use crate::exit::{Exit, Failure, chain};

/// The folder of a running server.
pub(super) enum Folder {
    /// Named by the user.
    Kept { path: PathBuf, _lock: File },
    /// Removed with everything in it when this value goes.
    Private { folder: TempDir, _lock: File },
}

/// Why there is no folder to work in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("another neap has it open{}", by(*process))]
    InUse { path: PathBuf, process: Option<u32> },
    #[error("it cannot be made or written")]
    Unusable { path: PathBuf, source: io::Error },
    #[error("no private folder can be made in {}", path.display())]
    NoTemporary { path: PathBuf, source: io::Error },
}

fn by(process: Option<u32>) -> String {
    process.map_or(String::new(), |id| format!(" (process {id})"))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = chain(&error);
        let (code, what, remedy) = match &error {
            Error::InUse { path, .. } => (
                "NT-UP-0003",
                format!("the data folder {} is in use", path.display()),
                "stop the other one, or name another folder with --data",
            ),
            Error::Unusable { path, .. } => (
                "NT-UP-0004",
                format!("cannot use the data folder {}", path.display()),
                "name a folder that you may write with --data",
            ),
            Error::NoTemporary { .. } => (
                "NT-UP-0004",
                "cannot make a private folder".to_owned(),
                "name a folder with --data, or set TMPDIR to one that you may write",
            ),
        };
        Self::new(code, Exit::Refused, &what, &why).remedy(remedy)
    }
}

impl Folder {
    /// Opens the data folder, or makes a private one if none was named.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, Error> {
        match data {
            Some(path) => Self::keep(path),
            None => Self::private(),
        }
    }

    fn keep(path: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable {
            path: path.to_owned(),
            source,
        };
        private::create_folder(path).map_err(unusable)?;
        // Absolute, so that the kubeconfig's path can be used from any working folder.
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
        Ok(Self::Kept { path, _lock: lock })
    }

    fn private() -> Result<Self, Error> {
        let none = |source| Error::NoTemporary {
            path: std::env::temp_dir(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix(abandoned::PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(none)?;
        let lock = abandoned::lock(folder.path()).map_err(none)?;
        Ok(Self::Private {
            folder,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept { path, .. } => path,
            Self::Private { folder, .. } => folder.path(),
        }
    }

    /// Removes a private folder now, and says so if that fails; dropping it would be silent.
    pub(super) fn close(self) {
        let Self::Private { folder, _lock } = self else {
            return;
        };
        let path = folder.path().to_owned();
        if let Err(error) = folder.close() {
            let path = path.display();
            tracing::warn!(%path, %error, "the private folder could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folder_is_taken_once() {
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
    fn private_folder_is_private_and_goes_with_its_owner() {
        let folder = Folder::open(None).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn file_in_place_of_the_folder_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("file");
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(
            Folder::open(Some(&path)),
            Err(Error::Unusable { .. })
        ));
    }
}
