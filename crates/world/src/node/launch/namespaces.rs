//! Rooms of one's own.

use std::{fs, fs::File, io};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    unistd::{getegid, geteuid, sethostname},
};

use super::{Error, Rooms};

/// Enters new namespaces; the pid namespace begins with the next process that is started.
pub(super) fn enter(rooms: &Rooms) -> Result<(), Error> {
    let (user, group) = (geteuid(), getegid());
    let new = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    tried("unshare", unshare(new).map_err(io::Error::from))?;
    // Whoever has no privileges may map groups only after giving up to change them.
    tried("deny setgroups", fs::write("/proc/self/setgroups", "deny"))?;
    let map = |inside: u32, outside: u32| format!("{inside} {outside} 1");
    let users = map(rooms.user, user.as_raw());
    tried("map the user", fs::write("/proc/self/uid_map", users))?;
    let groups = map(rooms.group, group.as_raw());
    tried("map the group", fs::write("/proc/self/gid_map", groups))?;
    let name = sethostname(&rooms.host_name);
    tried("set the host name", name.map_err(io::Error::from))?;
    // What is mounted in here stays in here.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let kept = mount(None::<&str>, "/", None::<&str>, private, None::<&str>);
    tried("keep mounts private", kept.map_err(Errno::into))
}

/// Enters the namespaces that `launcher` made; that of pids with the next process that is started.
pub(super) fn join(launcher: u32) -> Result<(), Error> {
    // All are opened first: inside of them the machine's processes cannot be seen.
    let open = |name: &str| File::open(format!("/proc/{launcher}/ns/{name}"));
    let all = ["user", "mnt", "pid_for_children", "ipc", "uts"].map(open);
    for namespace in all {
        let entered = namespace.and_then(|one| Ok(setns(one, CloneFlags::empty())?));
        tried("join those of a container", entered)?;
    }
    Ok(())
}

fn tried(action: &'static str, result: io::Result<()>) -> Result<(), Error> {
    result.map_err(|source| Error::Namespaces { action, source })
}
