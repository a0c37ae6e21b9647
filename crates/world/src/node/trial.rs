//! Whether containers can have rooms of their own on this machine.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

use super::launch::{Launch, Rooms};

/// Launches a process that does nothing in rooms of its own. Some machines and containers do not
/// allow that; then this says why, in the launcher's words.
pub fn rooms(launcher: &Path, folder: &Path) -> Result<(), String> {
    attempt(launcher, folder, false).unwrap_or_else(|error| Err(error.to_string()))
}

/// The same in rooms where `/proc` shows no processes but their own, which fewer machines allow.
pub fn own_proc(launcher: &Path, folder: &Path) -> Result<(), String> {
    attempt(launcher, folder, true).unwrap_or_else(|error| Err(error.to_string()))
}

fn attempt(launcher: &Path, folder: &Path, own_proc: bool) -> io::Result<Result<(), String>> {
    let folder = folder.join("trial");
    fs::create_dir_all(&folder)?;
    let launch = Launch {
        command: vec!["/bin/true".to_owned()],
        environment: BTreeMap::new(),
        folder: None,
        parent: std::process::id(),
        rooms: Some(Rooms {
            root: folder.join("root"),
            mounts: Vec::new(),
            // One who is not root inside has the most to keep.
            user: 1,
            group: 1,
            host_name: "trial".to_owned(),
            own_proc,
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
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(if output.status.success() {
        Ok(())
    } else {
        Err(said.trim().trim_start_matches("neap: ").to_owned())
    })
}
