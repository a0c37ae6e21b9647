//! Whether containers can have rooms of their own on this machine.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

use super::launch::{Launch, Rooms};

/// Launches a process that does nothing in rooms of its own. Some machines and containers do not
/// allow that; then this says why, in the launcher's words.
pub fn rooms(launcher: &Path, folder: &Path) -> Result<(), String> {
    attempt(launcher, folder, Wish::default()).unwrap_or_else(|error| Err(error.to_string()))
}

/// The same in rooms where `/proc` shows no processes but their own, which fewer machines allow.
pub fn own_proc(launcher: &Path, folder: &Path) -> Result<(), String> {
    let wish = Wish {
        own_proc: true,
        ..Wish::default()
    };
    attempt(launcher, folder, wish).unwrap_or_else(|error| Err(error.to_string()))
}

/// The same for one who is root of the machine, in rooms of root's own.
pub fn as_root(launcher: &Path, folder: &Path) -> Result<(), String> {
    let wish = Wish {
        own_proc: true,
        as_root: true,
    };
    attempt(launcher, folder, wish).unwrap_or_else(|error| Err(error.to_string()))
}

/// What the rooms are to have.
#[derive(Debug, Clone, Copy, Default)]
struct Wish {
    own_proc: bool,
    as_root: bool,
}

fn attempt(launcher: &Path, folder: &Path, wish: Wish) -> io::Result<Result<(), String>> {
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
            user: u32::from(!wish.as_root),
            group: u32::from(!wish.as_root),
            host_name: "trial".to_owned(),
            own_proc: wish.own_proc,
            as_root: wish.as_root,
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
