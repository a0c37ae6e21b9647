//! What this machine allows.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
};

use neap_world::node::trial;
use rustix::process::{Resource, getrlimit};

use super::Finding;

/// With fewer, a few hundred clients and pods are too many.
const ENOUGH_FILES: u64 = 4096;
/// An address on which nobody listens; Linux has all that begin with 127.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 254, 0, 1);
/// Says from which port on anybody may listen.
const UNPRIVILEGED: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// What was tried.
struct Machine {
    /// Whether a process can be started in rooms of its own, and if not, what was said.
    rooms: Result<(), String>,
    /// How many files may be open; nothing if there is no limit.
    files: Option<u64>,
    loopback: Result<(), io::ErrorKind>,
    low_port: Result<(), io::ErrorKind>,
    /// Whether anybody may listen on low ports; a pod is root only inside.
    free_for_all: bool,
}

/// Tries everything that a node needs.
pub(super) fn check() -> Vec<Finding> {
    let bind = |port| TcpListener::bind((ADDRESS, port)).map(drop);
    judge(&Machine {
        rooms: rooms(),
        // `neap up` raises its limit up to this.
        files: getrlimit(Resource::Nofile).maximum,
        loopback: bind(0).map_err(|error| error.kind()),
        low_port: bind(1).map_err(|error| error.kind()),
        free_for_all: fs::read_to_string(UNPRIVILEGED)
            .is_ok_and(|first| first.trim().parse().is_ok_and(|first: u16| first <= 1)),
    })
}

/// Starts a process as a container's is started.
fn rooms() -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(told)?;
    let neap = std::env::current_exe().map_err(told)?;
    trial::rooms(&neap, folder.path())
}

fn judge(machine: &Machine) -> Vec<Finding> {
    let Machine {
        rooms,
        files,
        loopback,
        low_port,
        free_for_all,
    } = machine;
    let low_port = low_ports(*low_port, *free_for_all || rooms.is_err());
    let rooms = match rooms {
        Ok(()) => Finding::ok(
            "namespaces",
            "pods have their own files, processes and host name",
        ),
        Err(why) => Finding::note(
            "namespaces",
            format!("refused: {why}"),
            "pods run as plain processes, without volumes at their paths; allow user namespaces: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns",
        ),
    };
    let files = match files {
        Some(files) if *files < ENOUGH_FILES => Finding::note(
            "open files",
            format!("at most {files}"),
            "raise the hard limit for many pods and clients: ulimit -Hn 65536",
        ),
        Some(files) => Finding::ok("open files", format!("up to {files}")),
        None => Finding::ok("open files", "no limit"),
    };
    let loopback = match loopback {
        Ok(()) => Finding::ok("addresses", "every pod and service has one of 127.0.0.0/8"),
        Err(why) => Finding::failed(
            "addresses",
            format!("{ADDRESS} cannot be listened on: {why}"),
            "pods need addresses of 127.0.0.0/8: see that the interface lo is up and has 127.0.0.1/8",
        ),
    };
    vec![rooms, files, loopback, low_port]
}

/// Services are served by `neap up` itself; pods have rights of their own, or those of everybody.
fn low_ports(bound: Result<(), io::ErrorKind>, pods: bool) -> Finding {
    let name = "ports below 1024";
    match bound {
        Err(io::ErrorKind::PermissionDenied) => Finding::note(
            name,
            "neither services nor pods can listen there without root",
            "give services a node port or a higher port; sysctl net.ipv4.ip_unprivileged_port_start=0 allows them",
        ),
        // Taken or not, it is not refused for being low.
        Ok(()) | Err(io::ErrorKind::AddrInUse) if pods => {
            Finding::ok(name, "services and pods can listen there")
        }
        Ok(()) | Err(io::ErrorKind::AddrInUse) => Finding::note(
            name,
            "services can listen there, pods cannot",
            "let containers listen on ports from 1024 on; sysctl net.ipv4.ip_unprivileged_port_start=0 allows them",
        ),
        Err(why) => Finding::note(
            name,
            format!("whether anybody can listen there cannot be told: {why}"),
            "see what the line about addresses says",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Level, *};

    #[test]
    fn what_a_machine_does_not_allow_is_told_with_a_way_out() {
        let good = Machine {
            rooms: Ok(()),
            files: Some(1 << 20),
            loopback: Ok(()),
            low_port: Err(io::ErrorKind::AddrInUse),
            free_for_all: true,
        };
        let levels = |machine: &Machine| {
            judge(machine)
                .iter()
                .map(|one| one.level)
                .collect::<Vec<_>>()
        };
        assert_eq!(levels(&good), [Level::Ok; 4]);
        let bad = Machine {
            rooms: Err("no".into()),
            files: Some(256),
            loopback: Err(io::ErrorKind::AddrNotAvailable),
            low_port: Err(io::ErrorKind::PermissionDenied),
            free_for_all: false,
        };
        let (note, failed) = (Level::Note, Level::Failed);
        assert_eq!(levels(&bad), [note, note, failed, note]);
        assert!(judge(&bad).iter().all(|one| !one.hint.is_empty()));
    }

    #[test]
    fn low_ports_are_well_only_if_services_and_pods_may_have_them() {
        for (bound, pods, level) in [
            (Ok(()), true, Level::Ok),
            (Ok(()), false, Level::Note),
            (Err(io::ErrorKind::PermissionDenied), true, Level::Note),
            (Err(io::ErrorKind::AddrNotAvailable), true, Level::Note),
        ] {
            assert_eq!(low_ports(bound, pods).level, level, "{bound:?} {pods}");
        }
    }
}
