//! The processes that belong to one `neap up`, exactly: its descendants, and those with its mark.
//!
//! Descendants are identified by pid and start time before the kill, without cooperation of the
//! process. The mark also finds processes that were started while the kill was on its way.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    pub id: u32,
    /// The start time, in ticks since boot: a pid is reused, this is not.
    began: u64,
    /// Program and arguments.
    pub command: String,
    /// The working directory.
    pub folder: String,
}

impl ProcessEntry {
    /// Kills it, if the pid still belongs to the same process.
    pub(super) fn end(&self) {
        let same = Stat::of(self.id).is_some_and(|stat| stat.began == self.began);
        if let (true, Ok(id)) = (same, i32::try_from(self.id)) {
            // It may be gone already.
            let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        }
    }

    fn of(id: u32, began: u64) -> Self {
        let place = |name| format!("/proc/{id}/{name}");
        let command = fs::read(place("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let folder = fs::read_link(place("cwd")).unwrap_or_default();
        Self {
            id,
            began,
            command: command.trim_end().to_owned(),
            folder: folder.display().to_string(),
        }
    }
}

/// All processes of one `neap up`.
#[derive(Debug)]
pub(super) struct ProcessFamily {
    mark: String,
    /// The mount namespace of this process, if it can be read.
    rooms: Option<PathBuf>,
}

impl ProcessFamily {
    /// `mark` is in the environment, the command line or the mounts of each of them, and of no
    /// other process.
    pub(super) fn new(mark: String) -> Self {
        Self {
            mark,
            rooms: fs::read_link("/proc/self/ns/mnt").ok(),
        }
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Live processes: those of `known`, and all others with the mark.
    pub(super) fn alive(&self, known: &[ProcessEntry]) -> Result<Vec<ProcessEntry>> {
        let known: BTreeSet<_> = known.iter().map(|one| (one.id, one.began)).collect();
        let alive = all()?.into_iter().filter(|stat| {
            known.contains(&(stat.id, stat.began))
                || self.marked(Path::new(&format!("/proc/{}", stat.id)))
        });
        Ok(alive
            .map(|stat| ProcessEntry::of(stat.id, stat.began))
            .collect())
    }

    fn marked(&self, process: &Path) -> bool {
        let has = |name: &str| {
            // A file that may not be read belongs to another user.
            let text = fs::read(process.join(name)).unwrap_or_default();
            memchr::memmem::find(&text, self.mark.as_bytes()).is_some()
        };
        // A process that has not executed its command yet has no environment, but a mount namespace
        // with files of the node's folder.
        let rooms = fs::read_link(process.join("ns/mnt"));
        let has_rooms = rooms.is_ok_and(|rooms| Some(&rooms) != self.rooms.as_ref());
        has("environ") || has("cmdline") || (has_rooms && has("mountinfo"))
    }
}

/// The descendants of `ancestor`.
pub(super) fn below(ancestor: u32) -> Result<Vec<ProcessEntry>> {
    let all = all()?;
    let mut family = BTreeSet::from([ancestor]);
    loop {
        let before = family.len();
        let children = all.iter().filter(|stat| family.contains(&stat.parent));
        let children: Vec<_> = children.map(|stat| stat.id).collect();
        family.extend(children);
        if family.len() == before {
            break;
        }
    }
    let below = all
        .iter()
        .filter(|stat| stat.id != ancestor && family.contains(&stat.id));
    Ok(below
        .map(|stat| ProcessEntry::of(stat.id, stat.began))
        .collect())
}

/// An entry of the process table.
struct Stat {
    id: u32,
    parent: u32,
    began: u64,
}

/// All live processes; zombies do not count.
fn all() -> Result<Vec<Stat>> {
    let entries = fs::read_dir("/proc").context("processes are found on Linux only")?;
    let names = entries.map(|entry| Ok(entry?.file_name()));
    let names: io::Result<Vec<_>> = names.collect();
    let ids = names?
        .into_iter()
        .filter_map(|name| name.to_str()?.parse().ok());
    Ok(ids.filter_map(Stat::of).collect())
}

impl Stat {
    fn of(id: u32) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The program's name is in parentheses, and may contain some itself.
        let (_, rest) = line.rsplit_once(") ")?;
        let fields: Vec<_> = rest.split(' ').collect();
        let dead = ["Z", "X"].contains(fields.first()?);
        (!dead).then_some(())?;
        Some(Self {
            id,
            parent: fields.get(1)?.parse().ok()?,
            began: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A shell that has started another process, without a mark.
    fn family() -> Child {
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().args(["-c", "sleep 86400 & wait"]);
        shell.spawn().unwrap()
    }

    fn until<T>(look: impl Fn() -> Option<T>) -> T {
        let mut looks = std::iter::repeat_with(|| {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
            look()
        });
        looks.by_ref().take(2000).flatten().next().unwrap()
    }

    #[test]
    fn a_grandchild_that_its_parent_leaves_behind_is_found_without_a_mark() {
        let mut shell = family();
        let id = shell.id();
        let sleeper = until(|| {
            let below = below(std::process::id()).unwrap();
            let sleeper = below.iter().find(|one| one.command == "sleep 86400");
            let sleeper = sleeper.filter(|one| Stat::of(one.id).is_some_and(|it| it.parent == id));
            sleeper.cloned()
        });
        shell.kill().unwrap();
        shell.wait().unwrap();
        let unmarked = ProcessFamily::new("a mark of no process".to_owned() + &id.to_string());
        let known = [sleeper.clone()];
        assert_eq!(unmarked.alive(&known).unwrap(), known);
        sleeper.end();
        until(|| unmarked.alive(&known).unwrap().is_empty().then_some(()));
    }

    #[test]
    fn a_marked_process_is_found_wherever_it_came_from_and_a_dead_one_is_not() {
        let mark = format!("mark-of-{}", std::process::id());
        let family = ProcessFamily::new(mark.clone());
        assert_eq!(family.alive(&[]).unwrap(), []);
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("86400").env("A", &mark).spawn().unwrap();
        let found = until(|| family.alive(&[]).unwrap().pop());
        assert_eq!(found.id, child.id());
        child.kill().unwrap();
        // It has not been waited for, so it is still in the process table.
        until(|| {
            family
                .alive(std::slice::from_ref(&found))
                .unwrap()
                .is_empty()
                .then_some(())
        });
        child.wait().unwrap();
    }
}
