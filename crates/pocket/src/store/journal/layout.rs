//! The names of the files in a data folder.

use super::{Disk, Error};

/// The files of a folder, by name. Foreign files are left alone.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Bases of the logs, ascending.
    pub(super) logs: Vec<u64>,
    /// Revisions of the snapshots, ascending.
    pub(super) snapshots: Vec<u64>,
    /// Files whose creation was interrupted.
    pub(super) unfinished: Vec<String>,
    /// Whether there is a `FORMAT` file.
    pub(super) format: bool,
}

pub(super) const FORMAT: &str = "FORMAT";
pub(super) const NEW_FORMAT: &str = "FORMAT.tmp";

/// The log of the records after revision `base`.
pub(super) fn log(base: u64) -> String {
    format!("log-{base:020}.seg")
}

/// The snapshot of all objects at `revision`.
pub(super) fn snapshot(revision: u64) -> String {
    format!("snapshot-{revision:020}.seg")
}

/// The name of a snapshot that is being written.
pub(super) fn new_snapshot(revision: u64) -> String {
    format!("snapshot-{revision:020}.tmp")
}

impl Layout {
    pub(super) fn of(disk: &dyn Disk) -> Result<Self, Error> {
        let mut layout = Self::default();
        for name in disk.list().map_err(Error::io(disk, "list", ""))? {
            layout.sort_in(name);
        }
        layout.logs.sort_unstable();
        layout.snapshots.sort_unstable();
        Ok(layout)
    }

    fn sort_in(&mut self, name: String) {
        if name == FORMAT {
            self.format = true;
        } else if let Some(base) = revision_in(&name, "log-", ".seg") {
            self.logs.push(base);
        } else if let Some(revision) = revision_in(&name, "snapshot-", ".seg") {
            self.snapshots.push(revision);
        } else if name == NEW_FORMAT || revision_in(&name, "snapshot-", ".tmp").is_some() {
            self.unfinished.push(name);
        }
    }

    /// Where recovery starts: the newest snapshot, or the beginning of history.
    pub(super) fn base(&self) -> u64 {
        self.snapshots.last().copied().unwrap_or(0)
    }

    /// Files that the newest snapshot superseded, and unfinished ones.
    pub(super) fn superseded(&self) -> impl Iterator<Item = String> + '_ {
        let base = self.base();
        let logs = self.logs.iter().filter(move |b| **b < base);
        let snapshots = self.snapshots.iter().filter(move |r| **r < base);
        logs.map(|b| log(*b))
            .chain(snapshots.map(|r| snapshot(*r)))
            .chain(self.unfinished.iter().cloned())
    }
}

fn revision_in(name: &str, prefix: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}
