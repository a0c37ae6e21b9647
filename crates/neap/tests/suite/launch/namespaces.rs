//! The namespaces of a container: joining them, users, and visible processes.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use neap_world::node::{launch::JoinedContainer, namespace_support};
use rustix::process::geteuid;

use super::{Container, joined, make_world_writable, printed, text};

#[test]
fn a_command_can_join_a_container() {
    let (container, config) =
        Container::new("sleep 60 & echo ready; wait").file("config", "a", "text\n");
    let container = container.mounted(&config, "/config", true);
    let mut child = container.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let mut guest =
        Container::new("cat /config/a; hostname; kill -0 1 && echo sees its first process");
    guest.launch.namespaces = None;
    guest.launch.joins = Some(joined(&child));
    let lines = printed(&guest.output());
    assert_eq!(lines, ["text", "web-0", "sees its first process"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_container_and_joined_commands_see_only_their_processes() {
    let folder = tempfile::tempdir().unwrap();
    let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
    if let Err(why) = namespace_support::own_proc(neap, folder.path()) {
        // Where parts of /proc are masked, as in many containers, another one cannot be mounted.
        assert!(why.contains("show its own processes in /proc"), "{why}");
        return;
    }
    for user in [0, 70] {
        let mut container =
            Container::new("sleep 60 & readlink /proc/1/cwd || echo hidden; id -u; wait");
        container.namespaces().own_proc = true;
        container.namespaces().user = user;
        let mut child = container.start();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed_lines: Vec<_> = lines.by_ref().take(2).map(Result::unwrap).collect();
        // The first process gives no access to the file system of the machine.
        assert!(
            ["/", "hidden"].contains(&&*printed_lines[0]),
            "{printed_lines:?}"
        );
        assert_eq!(printed_lines[1], user.to_string());
        let script = "tr '\\0' ' ' < /proc/2/cmdline; echo; cat /proc/3/comm; test -e /proc/9 || echo no others; \
            grep -e ^CapAmb -e ^PPid /proc/$$/status";
        let mut guest = Container::new(script);
        guest.launch.namespaces = None;
        guest.launch.joins = Some(joined(&child));
        let lines = printed(&guest.output());
        assert!(lines[0].starts_with("/bin/sh -c sleep 60"), "{lines:?}");
        let seen: Vec<_> = lines[1..5].iter().map(String::as_str).collect();
        let none = "CapAmb:\t0000000000000000";
        assert_eq!(seen, ["sleep", "no others", "PPid:\t0", none]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn real_root_can_use_any_port_and_switch_users() {
    let script = "cat /proc/self/uid_map; grep ^CapEff: /proc/self/status; grep ^CapBnd: /proc/self/status; \
        setpriv --reuid=65534 --clear-groups id -u; unshare -m true 2>/dev/null || echo no more";
    let mut container = Container::new(&format!("{script}; echo ready; sleep 60"));
    container.namespaces().as_root = true;
    container.namespaces().own_proc = true;
    if !geteuid().is_root() {
        let output = container.output();
        assert_eq!(output.status.code(), Some(127));
        let why = text(&output.stderr);
        assert!(why.contains("namespaces are not permitted"), "{why}");
        return;
    }
    let mut child = container.start();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let own: Vec<_> = lines.take(6).map(Result::unwrap).collect();
    let mut guest = Container::new(script);
    guest.launch.namespaces = None;
    guest.launch.joins = Some(JoinedContainer {
        as_root: true,
        ..joined(&child)
    });
    let of_guest = printed(&guest.output());
    assert_eq!(own[..5], of_guest);
    let words: Vec<_> = own[0].split_whitespace().collect();
    assert_eq!(words, ["0", "0", "4294967295"], "no users of its own");
    // Bit 10 is CAP_NET_BIND_SERVICE, bit 21 is CAP_SYS_ADMIN.
    for rights in &own[1..3] {
        let (_, rights) = rights.split_once('\t').unwrap();
        let rights = u64::from_str_radix(rights, 16).unwrap();
        assert_eq!((rights >> 10 & 1, rights >> 21 & 1), (1, 0));
    }
    assert_eq!(own[3..], ["65534", "no more", "ready"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_command_joins_nothing_but_its_container() {
    let container = Container::new("exit 0");
    let mut child = container.start();
    let over = joined(&child);
    let mut guest = Container::new("echo on the host");
    guest.launch.namespaces = None;
    // The launcher waits for a container that has not started yet; this one has already ended.
    child.wait().unwrap();
    let own = JoinedContainer {
        launcher: std::process::id(),
        began: 1,
        as_root: false,
    };
    for joins in [over, own] {
        guest.launch.joins = Some(joins);
        let output = guest.output();
        assert_eq!(output.status.code(), Some(127), "{joins:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("the container has ended"));
    }
}

#[test]
fn no_privileges_are_needed() {
    if !geteuid().is_root() {
        // All other tests here run without privileges then.
        return;
    }
    let script = "id -u; cat /config/a; echo ready; sleep 60";
    let (container, config) = Container::new(script).file("config", "a", "text\n");
    let mut container = container.mounted(&config, "/config", false);
    container.unprivileged = true;
    make_world_writable(container.folder.path());
    container.namespaces().user = 26;
    let mut child = container.start();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.take(3).map(Result::unwrap).collect();
    assert_eq!(lines, ["26", "text", "ready"]);
    let mut guest = Container::new("id -u; cat /config/a");
    guest.unprivileged = true;
    make_world_writable(guest.folder.path());
    guest.launch.namespaces = None;
    guest.launch.joins = Some(joined(&child));
    assert_eq!(printed(&guest.output()), ["26", "text"]);
    child.kill().unwrap();
    child.wait().unwrap();
}
