//! Checks of this machine: what a node needs of the operating system.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    path::Path,
};

use neap_world::node::namespace_support;
use rustix::process::{Resource, getrlimit};

use neap_kit::area::Finding;

/// Open files below which a few hundred clients and pods are too many.
const MIN_OPEN_FILES: u64 = 4096;
/// A loopback address that no process uses; Linux accepts all of 127.0.0.0/8.
const PROBE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 254, 0, 1);
/// Holds the lowest port that needs no privileges.
const UNPRIVILEGED_PORT_START: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// The results of the probes.
struct HostCapabilities {
    /// Whether a process can be started in namespaces of its own, or the error.
    namespaces: Result<(), String>,
    /// The hard limit on open files, if there is one.
    files: Option<u64>,
    loopback: Result<(), io::ErrorKind>,
    low_port: Result<(), io::ErrorKind>,
    /// Whether low ports need no privileges.
    low_ports_unprivileged: bool,
    /// Whether a pod that runs as root can be root of the machine, not only of its namespace.
    as_root: bool,
}

/// The pods that can listen on low ports, if `neap up` can.
#[derive(Debug, Clone, Copy)]
enum LowPortPods {
    All,
    OfRoot,
    None,
}

/// Probes everything that a node needs.
pub(super) fn check() -> Vec<Finding> {
    let bind = |port| TcpListener::bind((PROBE_ADDRESS, port)).map(drop);
    let namespaces = attempt(namespace_support::namespaces);
    findings(&HostCapabilities {
        as_root: namespaces.is_ok() && attempt(namespace_support::as_root).is_ok(),
        namespaces,
        // `neap up` raises its soft limit to this value.
        files: getrlimit(Resource::Nofile).maximum,
        loopback: bind(0).map_err(|error| error.kind()),
        low_port: bind(1).map_err(|error| error.kind()),
        low_ports_unprivileged: fs::read_to_string(UNPRIVILEGED_PORT_START)
            .is_ok_and(|first| first.trim().parse().is_ok_and(|first: u16| first <= 1)),
    })
}

/// Starts a process the way the processes of containers are started.
fn attempt(check: fn(&Path, &Path) -> Result<(), String>) -> Result<(), String> {
    let message = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(message)?;
    let neap = std::env::current_exe().map_err(message)?;
    check(&neap, folder.path())
}

fn findings(host: &HostCapabilities) -> Vec<Finding> {
    let HostCapabilities {
        namespaces,
        files,
        loopback,
        low_port,
        low_ports_unprivileged,
        as_root,
    } = host;
    // Without namespaces, pods have the privileges of `neap up`.
    let pods = match (*low_ports_unprivileged || namespaces.is_err(), *as_root) {
        (true, _) => LowPortPods::All,
        (false, true) => LowPortPods::OfRoot,
        (false, false) => LowPortPods::None,
    };
    let low_port = low_ports(*low_port, pods);
    let namespaces = match namespaces {
        Ok(()) => Finding::ok(
            "namespaces",
            "pods have their own mount, process and host name namespaces",
        ),
        Err(why) => Finding::note(
            "namespaces",
            format!("refused: {why}"),
            "pods run as plain processes, without volumes at their mount paths; allow user namespaces: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns",
        ),
    };
    let files = match files {
        Some(files) if *files < MIN_OPEN_FILES => Finding::note(
            "open files",
            format!("at most {files}"),
            "raise the hard limit for many pods and clients: ulimit -Hn 65536",
        ),
        Some(files) => Finding::ok("open files", format!("up to {files}")),
        None => Finding::ok("open files", "no limit"),
    };
    let loopback = match loopback {
        Ok(()) => Finding::ok(
            "addresses",
            "pods and services get addresses of 127.0.0.0/8",
        ),
        Err(why) => Finding::failed(
            "addresses",
            format!("cannot listen on {PROBE_ADDRESS}: {why}"),
            "pods need addresses of 127.0.0.0/8: check that the interface lo is up and has 127.0.0.1/8",
        ),
    };
    vec![namespaces, files, loopback, low_port]
}

/// `neap up` itself listens for services; pods listen with privileges of their own.
fn low_ports(bound: Result<(), io::ErrorKind>, pods: LowPortPods) -> Finding {
    let name = "ports below 1024";
    // A port in use was not refused for being low.
    let bound = match bound {
        Err(io::ErrorKind::AddrInUse) => Ok(()),
        bound => bound,
    };
    match (bound, pods) {
        (Err(io::ErrorKind::PermissionDenied), _) => Finding::note(
            name,
            "services and pods cannot use them without root",
            "give services a node port or a port from 1024 on, or allow low ports: sysctl net.ipv4.ip_unprivileged_port_start=0",
        ),
        (Ok(()), LowPortPods::All) => Finding::ok(name, "services and pods can use them"),
        (Ok(()), LowPortPods::OfRoot) => {
            Finding::ok(name, "services, and pods that run as root, can use them")
        }
        (Ok(()), LowPortPods::None) => Finding::note(
            name,
            "services can use them, pods cannot",
            "let containers listen on ports from 1024 on, or allow low ports: sysctl net.ipv4.ip_unprivileged_port_start=0",
        ),
        (Err(why), _) => Finding::note(
            name,
            format!("cannot be determined: {why}"),
            "see the check of addresses above",
        ),
    }
}

#[cfg(test)]
mod tests {
    use neap_kit::area::Level;

    use super::*;

    #[test]
    fn missing_capabilities_are_reported_with_a_hint() {
        let good = HostCapabilities {
            namespaces: Ok(()),
            files: Some(1 << 20),
            loopback: Ok(()),
            low_port: Err(io::ErrorKind::AddrInUse),
            low_ports_unprivileged: true,
            as_root: false,
        };
        let levels = |host: &HostCapabilities| {
            findings(host)
                .iter()
                .map(|one| one.level)
                .collect::<Vec<_>>()
        };
        assert_eq!(levels(&good), [Level::Ok; 4]);
        let bad = HostCapabilities {
            namespaces: Err("no".into()),
            files: Some(256),
            loopback: Err(io::ErrorKind::AddrNotAvailable),
            low_port: Err(io::ErrorKind::PermissionDenied),
            low_ports_unprivileged: false,
            as_root: false,
        };
        let (note, failed) = (Level::Note, Level::Failed);
        assert_eq!(levels(&bad), [note, note, failed, note]);
        assert!(findings(&bad).iter().all(|one| !one.hint.is_empty()));
    }

    #[test]
    fn low_ports_are_ok_only_if_services_and_pods_can_use_them() {
        let denied = io::ErrorKind::PermissionDenied;
        for (bound, pods, level) in [
            (Ok(()), LowPortPods::All, Level::Ok),
            (Err(io::ErrorKind::AddrInUse), LowPortPods::All, Level::Ok),
            (Ok(()), LowPortPods::OfRoot, Level::Ok),
            (Ok(()), LowPortPods::None, Level::Note),
            (Err(denied), LowPortPods::All, Level::Note),
            (
                Err(io::ErrorKind::AddrNotAvailable),
                LowPortPods::All,
                Level::Note,
            ),
        ] {
            assert_eq!(low_ports(bound, pods).level, level, "{bound:?} {pods:?}");
        }
    }

    #[test]
    fn the_message_names_the_pods_that_can_use_low_ports() {
        let message_for = |namespaces: Result<(), String>, low_ports_unprivileged, as_root| {
            let findings = findings(&HostCapabilities {
                namespaces,
                files: None,
                loopback: Ok(()),
                low_port: Ok(()),
                low_ports_unprivileged,
                as_root,
            });
            findings[3].message.clone()
        };
        let (all, none) = (
            "services and pods can use them",
            "services can use them, pods cannot",
        );
        let of_root = "services, and pods that run as root, can use them";
        assert_eq!(message_for(Ok(()), true, true), all);
        assert_eq!(message_for(Err("no".into()), false, false), all);
        assert_eq!(message_for(Ok(()), false, true), of_root);
        assert_eq!(message_for(Ok(()), false, false), none);
    }
}
