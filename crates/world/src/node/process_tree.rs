//! The process tree of this machine, as `/proc` shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The usual mount point of procfs.
pub(super) const PROC: &str = "/proc";

/// The fields of `/proc/N/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) parent: u32,
    /// Start time, in ticks since boot.
    pub(super) started: u64,
    /// CPU ticks of the process and of its children that have ended.
    pub(super) cpu_ticks: u64,
    /// Resident memory, in pages.
    pub(super) pages: u64,
}

impl ProcessStat {
    /// Parses a line of `/proc/N/stat`. The name in it may contain anything.
    fn read(line: &str) -> Option<Self> {
        let (_, after) = line.rsplit_once(')')?;
        // The first of these is the third field of the line.
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let cpu_ticks = number(14)? + number(15)? + number(16)? + number(17)?;
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            started: number(22)?,
            cpu_ticks,
            pages: number(24)?,
        })
    }
}

/// The stat of `process`, if it exists.
pub(super) fn stat(process: u32) -> Option<ProcessStat> {
    stat_at(Path::new(PROC), process)
}

fn stat_at(proc: &Path, process: u32) -> Option<ProcessStat> {
    ProcessStat::read(&fs::read_to_string(proc.join(process.to_string()).join("stat")).ok()?)
}

/// Whether the process with that id is still the one that started then.
pub(super) fn is_same_process(process: u32, started: u64) -> bool {
    stat(process).is_some_and(|stat| stat.started == started)
}

/// All visible processes.
pub(super) fn all_processes() -> BTreeMap<u32, ProcessStat> {
    all_processes_at(Path::new(PROC))
}

fn all_processes_at(proc: &Path) -> BTreeMap<u32, ProcessStat> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|process| Some((process, stat_at(proc, process)?)))
        .collect()
}

/// The children of a process.
pub(super) fn children(process: u32) -> Vec<u32> {
    let all = all_processes();
    let children = all.iter().filter(|(_, stat)| stat.parent == process);
    children.map(|(number, _)| *number).collect()
}

/// All descendants of a process, as `proc` shows them.
pub(super) fn descendants(proc: &Path, process: u32) -> BTreeSet<u32> {
    descendants_in(&all_processes_at(proc), process)
}

/// The descendants of a process in one snapshot.
pub(super) fn descendants_in(all: &BTreeMap<u32, ProcessStat>, process: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, stat)| stat.parent == parent);
        for (&child, _) in children {
            if found.insert(child) {
                parents.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_contain_anything() {
        let line = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 0 0 10 20 3 4 20 0 1 0 555 4096 12 18446";
        let stat = ProcessStat::read(line).unwrap();
        let expected = ProcessStat {
            parent: 3,
            started: 555,
            cpu_ticks: 37,
            pages: 12,
        };
        assert_eq!(stat, expected);
        assert_eq!(ProcessStat::read("7 (a) S"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let stat = |parent| ProcessStat {
            parent,
            started: 0,
            cpu_ticks: 0,
            pages: 0,
        };
        let all =
            BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 3), (5, 1)].map(|(n, p)| (n, stat(p))));
        assert_eq!(descendants_in(&all, 2), BTreeSet::from([3, 4]));
        assert!(is_same_process(
            std::process::id(),
            self::stat(std::process::id()).unwrap().started
        ));
    }
}
