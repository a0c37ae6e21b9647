//! The data folder, polled from outside: compactions leave traces there.

use std::{collections::BTreeSet, fs, path::PathBuf};

/// The snapshots that were seen.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    snapshots: BTreeSet<String>,
}

impl DataFolder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            snapshots: BTreeSet::new(),
        }
    }

    /// Reads the folder. Returns true while a snapshot is being written.
    pub(super) fn poll(&mut self) -> bool {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return false;
        };
        let mut writing = false;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.rsplit_once('.') {
                Some((stem, "tmp")) if stem.starts_with("snapshot-") => writing = true,
                Some((stem, "seg")) if stem.starts_with("snapshot-") => {
                    self.snapshots.insert(name);
                }
                _ => {}
            }
        }
        writing
    }

    /// Compactions that were completed.
    pub(super) fn compactions(&self) -> usize {
        self.snapshots.len()
    }
}
