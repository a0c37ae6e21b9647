//! Creating and joining namespaces.

use std::{fs, fs::File, io, time::Duration};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    unistd::{Gid, Uid, getegid, geteuid, sethostname},
};

use super::{ContainerNamespaces, Error, JoinedContainer};
use crate::node::process_tree;

/// The number of polls for the first process of a container that is about to start, and the time
/// between them.
const MAX_POLLS: u32 = 1000;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Enters new namespaces; the pid namespace applies to the next process that is started.
pub(super) fn enter(namespaces: &ContainerNamespaces) -> Result<(), Error> {
    let mut new = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    new.set(CloneFlags::CLONE_NEWUSER, !namespaces.as_root);
    let (user, group) = (geteuid(), getegid());
    attempt("unshare", unshare(new).map_err(io::Error::from))?;
    if !namespaces.as_root {
        map_ids(namespaces, user, group)?;
    }
    let name = sethostname(&namespaces.host_name);
    attempt("set the host name", name.map_err(io::Error::from))?;
    // Mounts made here stay in this namespace.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let made_private = mount(None::<&str>, "/", None::<&str>, private, None::<&str>);
    attempt("keep mounts private", made_private.map_err(Errno::into))
}

/// Maps `user` and `group` of the machine to those of the container.
fn map_ids(namespaces: &ContainerNamespaces, user: Uid, group: Gid) -> Result<(), Error> {
    // An unprivileged process may map groups only after giving up setgroups.
    attempt("deny setgroups", fs::write("/proc/self/setgroups", "deny"))?;
    let map = |inside: u32, outside: u32| format!("{inside} {outside} 1");
    let users = map(namespaces.user, user.as_raw());
    attempt("map the user", fs::write("/proc/self/uid_map", users))?;
    let groups = map(namespaces.group, group.as_raw());
    attempt("map the group", fs::write("/proc/self/gid_map", groups))
}

/// Mounts a `/proc` that shows the processes of this pid namespace.
pub(super) fn show_own_processes(namespaces: &ContainerNamespaces) -> Result<(), Error> {
    if !namespaces.own_proc {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let shown = mount(
        Some("proc"),
        process_tree::PROC,
        Some("proc"),
        flags,
        None::<&str>,
    );
    attempt(
        "show its own processes in /proc",
        shown.map_err(Errno::into),
    )
}

/// Enters the namespaces of a container; the pid namespace applies to the next process that is
/// started.
pub(super) fn join(container: JoinedContainer) -> Result<(), Error> {
    let first = first_process(container)?;
    // All are opened first: from inside, the machine's processes cannot be seen.
    let open = |name: &str| File::open(format!("/proc/{first}/ns/{name}"));
    let names = ["user", "mnt", "pid", "ipc", "uts"];
    // A container that is root of the machine has no user namespace.
    let own = names.into_iter().skip(usize::from(container.as_root));
    let all: Vec<_> = own.map(open).collect();
    // The launcher still exists, so its pid and that of its child were not reused while the files
    // were opened.
    if !process_tree::is_same_process(container.launcher, container.began) {
        return Err(Error::Over);
    }
    for namespace in all {
        let entered = namespace.and_then(|one| Ok(setns(one, CloneFlags::empty())?));
        attempt("join those of the container", entered)?;
    }
    Ok(())
}

/// The first process in the namespaces. Before there is one they are not set up.
fn first_process(container: JoinedContainer) -> Result<u32, Error> {
    for _ in 0..MAX_POLLS {
        if !process_tree::is_same_process(container.launcher, container.began) {
            break;
        }
        if let Some(first) = process_tree::children(container.launcher).first() {
            return Ok(*first);
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    Err(Error::Over)
}

pub(super) fn attempt(action: &'static str, result: io::Result<()>) -> Result<(), Error> {
    result.map_err(|source| Error::Namespaces { action, source })
}
