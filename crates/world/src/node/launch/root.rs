//! A root folder in which everything is where the container expects it.
//!
//! It starts empty. What the machine has is bound into it folder by folder, except along the paths
//! of mounts: there the folders are new, so that a place such as `/etc/config` can exist although
//! `/etc` belongs to somebody else.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::statvfs::{FsFlags, statvfs},
    unistd::{chdir, pivot_root},
};

use super::{Error, Mount};

/// What is to be at a path, and below it.
#[derive(Default)]
struct Place<'a> {
    mount: Option<&'a Mount>,
    below: BTreeMap<OsString, Place<'a>>,
}

/// Builds a root over the folder `new`, and makes it the root of this process.
pub(super) fn build(new: &Path, mounts: &[Mount]) -> Result<(), Error> {
    fs::create_dir_all(new).map_err(about(new))?;
    memory_at(new)?;
    let mut places = Place::default();
    for mount in mounts {
        places.put(mount);
    }
    let temporary = places.below.entry("tmp".into()).or_default();
    let is_ours = temporary.mount.is_none() && temporary.below.is_empty();
    places.furnish(Path::new("/"), new)?;
    if is_ours {
        memory_at(&new.join("tmp"))?;
    }
    go_into(new).map_err(about(new))
}

/// A file system in memory.
fn memory_at(path: &Path) -> Result<(), Error> {
    let none = None::<&str>;
    let mounted = mount(
        none,
        path,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=1777"),
    );
    mounted.map_err(|error| about(path)(error.into()))
}

fn go_into(new: &Path) -> io::Result<()> {
    chdir(new)?;
    // The old root is laid over the new one, and then taken off.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    Ok(())
}

impl<'a> Place<'a> {
    fn put(&mut self, mount: &'a Mount) {
        let mut place = self;
        for part in mount.to.components() {
            if let Component::Normal(name) = part {
                place = place.below.entry(name.to_owned()).or_default();
            }
        }
        place.mount = Some(mount);
    }

    /// Fills the folder `here` with what the machine has at `there` and with what is to be below.
    fn furnish(&self, there: &Path, here: &Path) -> Result<(), Error> {
        if let Ok(entries) = fs::read_dir(there) {
            for entry in entries.flatten() {
                let name = entry.file_name();
                if !self.below.contains_key(&name) {
                    show(&entry.path(), &here.join(name))?;
                }
            }
        }
        for (name, place) in &self.below {
            place.set(&there.join(name), &here.join(name))?;
        }
        Ok(())
    }

    fn set(&self, there: &Path, here: &Path) -> Result<(), Error> {
        let Some(mount) = self.mount else {
            fs::create_dir_all(here).map_err(about(here))?;
            // A container has temporary files of its own.
            let there = if there == Path::new("/tmp") {
                Path::new("/nowhere")
            } else {
                there
            };
            return self.furnish(there, here);
        };
        bind(&mount.from, here)?;
        // Places inside of a volume are made in it.
        for (name, place) in &self.below {
            place.set(Path::new("/nowhere"), &here.join(name))?;
        }
        if mount.read_only {
            protect(here)
        } else {
            Ok(())
        }
    }
}

/// Shows a file or folder of the machine, or the link it is.
fn show(there: &Path, here: &Path) -> Result<(), Error> {
    let kind = match fs::symlink_metadata(there) {
        // It went after the folder was looked at.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        kind => kind.map_err(about(there))?,
    };
    if kind.is_symlink() {
        let target: PathBuf = fs::read_link(there).map_err(about(there))?;
        return symlink(target, here).map_err(about(here));
    }
    match bind(there, here) {
        // Some files of a machine are not for everybody; they are missed by nobody here.
        Err(Error::Root { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            Ok(())
        }
        done => done,
    }
}

fn bind(there: &Path, here: &Path) -> Result<(), Error> {
    let made = if fs::metadata(there).map_err(about(there))?.is_dir() {
        fs::create_dir_all(here)
    } else {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(here)
            .map(drop)
    };
    made.map_err(about(here))?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    let bound = mount(Some(there), here, None::<&OsStr>, flags, None::<&OsStr>);
    bound.map_err(|error| about(there)(error.into()))
}

/// Flags that a mount has must stay when it is mounted again.
fn protect(here: &Path) -> Result<(), Error> {
    let has = statvfs(here)
        .map_err(|error| about(here)(error.into()))?
        .flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (flag, kept) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ] {
        flags.set(kept, has.contains(flag));
    }
    let none = None::<&str>;
    let done = mount(none, here, none, flags, none);
    done.map_err(|error| about(here)(error.into()))
}

fn about(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Root {
        path: path.to_owned(),
        source,
    }
}
