//! Whether containers can have their own namespaces on this machine.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

use super::launch::{ContainerNamespaces, Launch};

/// Launches a process that does nothing in its own namespaces. Some machines and containers do not
/// allow that; the error is that of the launcher.
pub fn namespaces(launcher: &Path, folder: &Path) -> Result<(), String> {
    attempt(launcher, folder, Features::default()).unwrap_or_else(|error| Err(error.to_string()))
}

/// The same with a `/proc` that shows only the processes of the pid namespace, which fewer machines
/// allow.
pub fn own_proc(launcher: &Path, folder: &Path) -> Result<(), String> {
    let features = Features {
        own_proc: true,
        ..Features::default()
    };
    attempt(launcher, folder, features).unwrap_or_else(|error| Err(error.to_string()))
}

/// The same as root of the machine, without a user namespace.
pub fn as_root(launcher: &Path, folder: &Path) -> Result<(), String> {
    let features = Features {
        own_proc: true,
        as_root: true,
    };
    attempt(launcher, folder, features).unwrap_or_else(|error| Err(error.to_string()))
}

/// The features to test.
#[derive(Debug, Clone, Copy, Default)]
struct Features {
    own_proc: bool,
    as_root: bool,
}

fn attempt(launcher: &Path, folder: &Path, features: Features) -> io::Result<Result<(), String>> {
    let folder = folder.join("trial");
    fs::create_dir_all(&folder)?;
    let launch = Launch {
        command: vec!["/bin/true".to_owned()],
        environment: BTreeMap::new(),
        folder: None,
        parent: std::process::id(),
        namespaces: Some(ContainerNamespaces {
            root: folder.join("root"),
            mounts: Vec::new(),
            // A user that is not root inside needs the most.
            user: u32::from(!features.as_root),
            group: u32::from(!features.as_root),
            host_name: "trial".to_owned(),
            own_proc: features.own_proc,
            as_root: features.as_root,
        }),
        joins: None,
        terminal: false,
        reports: false,
    };
    let description = folder.join("launch.json");
    fs::write(&description, serde_json::to_vec(&launch)?)?;
    let output = Command::new(launcher)
        .arg("launch")
        .arg(&description)
        .output()?;
    fs::remove_dir_all(&folder)?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok(if output.status.success() {
        Ok(())
    } else {
        Err(error.trim().trim_start_matches("neap: ").to_owned())
    })
}
