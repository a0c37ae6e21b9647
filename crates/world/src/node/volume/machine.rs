//! Files and folders of the machine itself.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// What has to be at a path of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Whatever there is; a folder if there is nothing.
    Anything,
    /// A folder that is there.
    Folder,
    /// A folder, made if there is none.
    FolderOrNew,
    /// A file that is there.
    File,
    /// A file, made if there is none.
    FileOrNew,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl Wanted {
    /// What the API means by `kind`.
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "Directory" => Self::Folder,
            "DirectoryOrCreate" => Self::FolderOrNew,
            "File" => Self::File,
            "FileOrCreate" => Self::FileOrNew,
            "Socket" => Self::Socket,
            "CharDevice" => Self::CharacterDevice,
            "BlockDevice" => Self::BlockDevice,
            _ => Self::Anything,
        }
    }
}

/// Where a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct Place {
    pub(in crate::node) path: PathBuf,
    /// Its files are written by the node alone, so nothing can be made in it.
    pub(in crate::node) is_written: bool,
}

impl Place {
    pub(in crate::node) fn written(path: PathBuf) -> Self {
        let is_written = true;
        Self { path, is_written }
    }

    pub(in crate::node) fn free(path: PathBuf) -> Self {
        let is_written = false;
        Self { path, is_written }
    }
}

/// Sees to it that there is what is wanted at `path`.
pub(in crate::node) fn provide(path: &Path, wanted: Wanted) -> io::Result<()> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return make(path, wanted),
        found => found?.file_type(),
    };
    let (fits, what) = match wanted {
        Wanted::Anything => (true, ""),
        Wanted::Folder | Wanted::FolderOrNew => (found.is_dir(), "folder"),
        Wanted::File | Wanted::FileOrNew => (found.is_file(), "file"),
        Wanted::Socket => (found.is_socket(), "socket"),
        Wanted::CharacterDevice => (found.is_char_device(), "character device"),
        Wanted::BlockDevice => (found.is_block_device(), "block device"),
    };
    if fits {
        return Ok(());
    }
    let words = format!("{} is no {what}", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, words))
}

fn make(path: &Path, wanted: Wanted) -> io::Result<()> {
    match wanted {
        // Whoever the container is inside, outside it is whoever makes this.
        Wanted::Anything | Wanted::FolderOrNew => fs::create_dir_all(path),
        Wanted::FileOrNew => fs::write(path, []),
        _ => {
            let words = format!("there is no {}", path.display());
            Err(io::Error::new(ErrorKind::NotFound, words))
        }
    }
}
