//! Files and folders of the machine.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// The required type of a path of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPathType {
    /// Any type; a folder is created if the path does not exist.
    Anything,
    /// An existing folder.
    Directory,
    /// A folder, created if it does not exist.
    DirectoryOrCreate,
    /// An existing file.
    File,
    /// A file, created if it does not exist.
    FileOrCreate,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl HostPathType {
    /// The `hostPath` type of the API.
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "Directory" => Self::Directory,
            "DirectoryOrCreate" => Self::DirectoryOrCreate,
            "File" => Self::File,
            "FileOrCreate" => Self::FileOrCreate,
            "Socket" => Self::Socket,
            "CharDevice" => Self::CharDevice,
            "BlockDevice" => Self::BlockDevice,
            _ => Self::Anything,
        }
    }
}

/// The path of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct VolumePath {
    pub(in crate::node) path: PathBuf,
    /// Whether only the node writes its files, so that nothing can be created in it.
    pub(in crate::node) is_written: bool,
}

impl VolumePath {
    pub(in crate::node) fn written(path: PathBuf) -> Self {
        let is_written = true;
        Self { path, is_written }
    }

    pub(in crate::node) fn free(path: PathBuf) -> Self {
        let is_written = false;
        Self { path, is_written }
    }
}

/// Checks the type of `path`, or creates it.
pub(in crate::node) fn ensure_host_path(path: &Path, wanted: HostPathType) -> io::Result<()> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return make(path, wanted),
        found => found?.file_type(),
    };
    let (fits, what) = match wanted {
        HostPathType::Anything => (true, ""),
        HostPathType::Directory | HostPathType::DirectoryOrCreate => (found.is_dir(), "folder"),
        HostPathType::File | HostPathType::FileOrCreate => (found.is_file(), "file"),
        HostPathType::Socket => (found.is_socket(), "socket"),
        HostPathType::CharDevice => (found.is_char_device(), "character device"),
        HostPathType::BlockDevice => (found.is_block_device(), "block device"),
    };
    if fits {
        return Ok(());
    }
    let message = format!("{} is not a {what}", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, message))
}

fn make(path: &Path, wanted: HostPathType) -> io::Result<()> {
    match wanted {
        // Created by the node's user, which is also the container's user outside.
        HostPathType::Anything | HostPathType::DirectoryOrCreate => fs::create_dir_all(path),
        HostPathType::FileOrCreate => fs::write(path, []),
        _ => {
            let message = format!("{} does not exist", path.display());
            Err(io::Error::new(ErrorKind::NotFound, message))
        }
    }
}
