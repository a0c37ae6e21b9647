//! Rooms of one's own.

use std::{fs, fs::File, io, time::Duration};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    unistd::{Gid, Uid, getegid, geteuid, sethostname},
};

use super::{Error, Joined, Rooms};
use crate::node::family;

/// How often is looked for the first process of a container that is about to start, and how long
/// between looks.
const LOOKS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(5);

/// Enters new namespaces; the pid namespace begins with the next process that is started.
pub(super) fn enter(rooms: &Rooms) -> Result<(), Error> {
    let mut new = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    new.set(CloneFlags::CLONE_NEWUSER, !rooms.as_root);
    let (user, group) = (geteuid(), getegid());
    tried("unshare", unshare(new).map_err(io::Error::from))?;
    if !rooms.as_root {
        become_another(rooms, user, group)?;
    }
    let name = sethostname(&rooms.host_name);
    tried("set the host name", name.map_err(io::Error::from))?;
    // What is mounted in here stays in here.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let kept = mount(None::<&str>, "/", None::<&str>, private, None::<&str>);
    tried("keep mounts private", kept.map_err(Errno::into))
}

/// Who `user` and `group` are outside is somebody else inside.
fn become_another(rooms: &Rooms, user: Uid, group: Gid) -> Result<(), Error> {
    // Whoever has no privileges may map groups only after giving up to change them.
    tried("deny setgroups", fs::write("/proc/self/setgroups", "deny"))?;
    let map = |inside: u32, outside: u32| format!("{inside} {outside} 1");
    let users = map(rooms.user, user.as_raw());
    tried("map the user", fs::write("/proc/self/uid_map", users))?;
    let groups = map(rooms.group, group.as_raw());
    tried("map the group", fs::write("/proc/self/gid_map", groups))
}

/// Has `/proc` show the processes of the pid namespace that this process is in.
pub(super) fn show_own_processes(rooms: &Rooms) -> Result<(), Error> {
    if !rooms.own_proc {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let shown = mount(
        Some("proc"),
        family::PROC,
        Some("proc"),
        flags,
        None::<&str>,
    );
    tried(
        "show its own processes in /proc",
        shown.map_err(Errno::into),
    )
}

/// Enters the rooms of a container; that of pids with the next process that is started.
pub(super) fn join(container: Joined) -> Result<(), Error> {
    let first = first_process(container)?;
    // All are opened first: inside of them the machine's processes cannot be seen.
    let open = |name: &str| File::open(format!("/proc/{first}/ns/{name}"));
    let names = ["user", "mnt", "pid", "ipc", "uts"];
    // One that is root of the machine has no users of its own.
    let own = names.into_iter().skip(usize::from(container.as_root));
    let all: Vec<_> = own.map(open).collect();
    // Whoever had these numbers when the launcher was still there had them before, too.
    if !family::is_there(container.launcher, container.began) {
        return Err(Error::Over);
    }
    for namespace in all {
        let entered = namespace.and_then(|one| Ok(setns(one, CloneFlags::empty())?));
        tried("join those of a container", entered)?;
    }
    Ok(())
}

/// The first process in the rooms. Before there is one they are not furnished.
fn first_process(container: Joined) -> Result<u32, Error> {
    for _ in 0..LOOKS {
        if !family::is_there(container.launcher, container.began) {
            break;
        }
        if let Some(first) = family::children(container.launcher).first() {
            return Ok(*first);
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(Error::Over)
}

pub(super) fn tried(action: &'static str, result: io::Result<()>) -> Result<(), Error> {
    result.map_err(|source| Error::Namespaces { action, source })
}
