//! Processes of this machine and what came of them, as `/proc` tells it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Where the machine's processes are usually found.
pub(super) const PROC: &str = "/proc";

/// What is told of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) parent: u32,
    /// When it began, in ticks since the machine did.
    pub(super) began: u64,
    /// Ticks that it has worked, and those of its children that have ended.
    pub(super) worked: u64,
    /// Pages of memory that it holds.
    pub(super) pages: u64,
}

impl Told {
    /// Reads a line of `/proc/N/stat`. The name in it may contain anything.
    fn read(line: &str) -> Option<Self> {
        let (_, after) = line.rsplit_once(')')?;
        // The first of these is the third field.
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let worked = number(14)? + number(15)? + number(16)? + number(17)?;
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            began: number(22)?,
            worked,
            pages: number(24)?,
        })
    }
}

/// What is told of `process`, if it is there.
pub(super) fn told(process: u32) -> Option<Told> {
    told_at(Path::new(PROC), process)
}

fn told_at(proc: &Path, process: u32) -> Option<Told> {
    Told::read(&fs::read_to_string(proc.join(process.to_string()).join("stat")).ok()?)
}

/// Whether the process of that number is still the one that began then.
pub(super) fn is_there(process: u32, began: u64) -> bool {
    told(process).is_some_and(|told| told.began == began)
}

/// Every process that can be seen.
pub(super) fn everybody() -> BTreeMap<u32, Told> {
    everybody_at(Path::new(PROC))
}

fn everybody_at(proc: &Path) -> BTreeMap<u32, Told> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|process| Some((process, told_at(proc, process)?)))
        .collect()
}

/// The children of a process.
pub(super) fn children(process: u32) -> Vec<u32> {
    let all = everybody();
    let children = all.iter().filter(|(_, told)| told.parent == process);
    children.map(|(number, _)| *number).collect()
}

/// Everybody below a process, as `proc` tells it.
pub(super) fn below(proc: &Path, process: u32) -> BTreeSet<u32> {
    below_in(&everybody_at(proc), process)
}

/// The same among those who were seen together.
pub(super) fn below_in(all: &BTreeMap<u32, Told>, process: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, told)| told.parent == parent);
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
    fn a_process_may_be_called_anything() {
        let line = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 0 0 10 20 3 4 20 0 1 0 555 4096 12 18446";
        let told = Told::read(line).unwrap();
        let expected = Told {
            parent: 3,
            began: 555,
            worked: 37,
            pages: 12,
        };
        assert_eq!(told, expected);
        assert_eq!(Told::read("7 (a) S"), None);
    }

    #[test]
    fn those_below_are_found_however_deep() {
        let told = |parent| Told {
            parent,
            began: 0,
            worked: 0,
            pages: 0,
        };
        let all =
            BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 3), (5, 1)].map(|(n, p)| (n, told(p))));
        assert_eq!(below_in(&all, 2), BTreeSet::from([3, 4]));
        assert!(is_there(
            std::process::id(),
            self::told(std::process::id()).unwrap().began
        ));
    }
}
