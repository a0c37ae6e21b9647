//! Which processes belong to one `neap up`, exactly: those below it, and those that bear its mark.
//!
//! The first kind is known by number and birth before the kill, and needs no cooperation of the
//! process. The second also finds whoever was born while the kill was on its way.

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

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it began, in ticks since the machine did: a number is given anew, this is not.
    began: u64,
    /// Program and arguments.
    pub command: String,
    /// Where it is at work.
    pub folder: String,
}

impl Process {
    /// Ends it, if it is still the same.
    pub(super) fn end(&self) {
        let same = Stat::of(self.id).is_some_and(|stat| stat.began == self.began);
        if let (true, Ok(id)) = (same, i32::try_from(self.id)) {
            // Gone is just as good.
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

/// All that belong to one `neap up`.
#[derive(Debug)]
pub(super) struct Kin {
    mark: String,
    /// The rooms that this process is in, if they can be told.
    rooms: Option<PathBuf>,
}

impl Kin {
    /// `mark` is in the environment, the command line or the mounts of each of them, and of nobody
    /// else.
    pub(super) fn new(mark: String) -> Self {
        Self {
            mark,
            rooms: fs::read_link("/proc/self/ns/mnt").ok(),
        }
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Those that live: of the `known`, and of all others.
    pub(super) fn alive(&self, known: &[Process]) -> Result<Vec<Process>> {
        let known: BTreeSet<_> = known.iter().map(|one| (one.id, one.began)).collect();
        let alive = all()?.into_iter().filter(|stat| {
            known.contains(&(stat.id, stat.began))
                || self.marked(Path::new(&format!("/proc/{}", stat.id)))
        });
        Ok(alive.map(|stat| Process::of(stat.id, stat.began)).collect())
    }

    fn marked(&self, process: &Path) -> bool {
        let has = |name: &str| {
            // What may not be read belongs to somebody else.
            let text = fs::read(process.join(name)).unwrap_or_default();
            memchr::memmem::find(&text, self.mark.as_bytes()).is_some()
        };
        // One that is on its way to its command has no environment yet, but rooms with files of the
        // node's folder in them.
        let rooms = fs::read_link(process.join("ns/mnt"));
        let has_rooms = rooms.is_ok_and(|rooms| Some(&rooms) != self.rooms.as_ref());
        has("environ") || has("cmdline") || (has_rooms && has("mountinfo"))
    }
}

/// The processes that `ancestor` started, and those that they did.
pub(super) fn below(ancestor: u32) -> Result<Vec<Process>> {
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
    Ok(below.map(|stat| Process::of(stat.id, stat.began)).collect())
}

/// A line of the system's table of processes.
struct Stat {
    id: u32,
    parent: u32,
    began: u64,
}

/// Everybody who lives; one that only waits to be buried does not.
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
        // The program's name is in brackets, and may have some itself.
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

    /// A shell that has started another process, and bears no mark.
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
        let nobody = Kin::new("a mark that nobody bears".to_owned() + &id.to_string());
        let known = [sleeper.clone()];
        assert_eq!(nobody.alive(&known).unwrap(), known);
        sleeper.end();
        until(|| nobody.alive(&known).unwrap().is_empty().then_some(()));
    }

    #[test]
    fn a_marked_process_is_found_wherever_it_came_from_and_a_dead_one_is_not() {
        let mark = format!("mark-of-{}", std::process::id());
        let kin = Kin::new(mark.clone());
        assert_eq!(kin.alive(&[]).unwrap(), []);
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("86400").env("A", &mark).spawn().unwrap();
        let found = until(|| kin.alive(&[]).unwrap().pop());
        assert_eq!(found.id, child.id());
        child.kill().unwrap();
        // Nobody has asked how it ended, so it is still in the table.
        until(|| {
            kin.alive(std::slice::from_ref(&found))
                .unwrap()
                .is_empty()
                .then_some(())
        });
        child.wait().unwrap();
    }
}
