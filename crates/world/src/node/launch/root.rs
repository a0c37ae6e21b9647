//! The root file system of a container.
//!
//! It starts empty. The machine's files are bound into it folder by folder, except along the paths
//! of mounts: those folders are new, so that a path such as `/etc/config` can exist although `/etc`
//! belongs to the machine.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{PermissionsExt, symlink},
    },
    path::{Component, Path, PathBuf},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::statvfs::{FsFlags, statvfs},
    unistd::{chdir, pivot_root},
};

use super::{Error, Mount};
use crate::node::volume::{leads_out, open_inside};

/// The mounts at a path and below it.
#[derive(Default)]
struct MountTree<'a> {
    mount: Option<&'a Mount>,
    below: BTreeMap<OsString, MountTree<'a>>,
}

/// Builds a root on the folder `new`, and makes it the root of this process.
pub(super) fn build(new: &Path, mounts: &[Mount]) -> Result<(), Error> {
    fs::create_dir_all(new).map_err(root_error(new))?;
    mount_tmpfs(new)?;
    let mut tree = MountTree::default();
    for mount in mounts {
        tree.insert(mount);
    }
    let temporary = tree.below.entry("tmp".into()).or_default();
    let is_ours = temporary.mount.is_none() && temporary.below.is_empty();
    tree.populate(Path::new("/"), new)?;
    if is_ours {
        mount_tmpfs(&new.join("tmp"))?;
    }
    pivot_into(new).map_err(root_error(new))
}

/// Mounts a file system in memory.
fn mount_tmpfs(path: &Path) -> Result<(), Error> {
    let none = None::<&str>;
    let mounted = mount(
        none,
        path,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=1777"),
    );
    mounted.map_err(|error| root_error(path)(error.into()))
}

fn pivot_into(new: &Path) -> io::Result<()> {
    chdir(new)?;
    // The old root is stacked on the new one, and then unmounted.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    Ok(())
}

impl<'a> MountTree<'a> {
    fn insert(&mut self, mount: &'a Mount) {
        let mut place = self;
        for part in mount.to.components() {
            if let Component::Normal(name) = part {
                place = place.below.entry(name.to_owned()).or_default();
            }
        }
        place.mount = Some(mount);
    }

    /// Fills the folder `here` with the machine's entries at `there` and with the mounts below.
    fn populate(&self, there: &Path, here: &Path) -> Result<(), Error> {
        if let Ok(entries) = fs::read_dir(there) {
            for entry in entries.flatten() {
                let name = entry.file_name();
                if !self.below.contains_key(&name) {
                    bind_from_host(&entry.path(), &here.join(name))?;
                }
            }
        }
        for (name, place) in &self.below {
            refuse_link_out(here, name)?;
            place.apply(&there.join(name), &here.join(name))?;
        }
        Ok(())
    }

    fn apply(&self, there: &Path, here: &Path) -> Result<(), Error> {
        let Some(mount) = self.mount else {
            fs::create_dir_all(here).map_err(root_error(here))?;
            // A container has its own temporary files, also where something is mounted among them.
            if there == Path::new("/tmp") {
                let open = fs::Permissions::from_mode(0o1777);
                fs::set_permissions(here, open).map_err(root_error(here))?;
                return self.populate(Path::new("/nowhere"), here);
            }
            return self.populate(there, here);
        };
        let (_open, from) = source(mount)?;
        bind(&from, here)?;
        // Mount points inside a volume are created in it.
        for (name, place) in &self.below {
            refuse_link_out(here, name)?;
            place.apply(Path::new("/nowhere"), &here.join(name))?;
        }
        if mount.read_only {
            remount_read_only(here)
        } else {
            Ok(())
        }
    }
}

/// Refuses a mount point that is a symbolic link out of its folder, which a container may have made in a
/// volume.
fn refuse_link_out(folder: &Path, name: &OsStr) -> Result<(), Error> {
    match open_inside(folder, Path::new(name)) {
        Err(error) if leads_out(&error) => Err(root_error(&folder.join(name))(error)),
        _ => Ok(()),
    }
}

/// The path from which a mount is bound. A part of a volume is opened first: what a container changes
/// there afterwards has no effect.
fn source(mount: &Mount) -> Result<(Option<OwnedFd>, PathBuf), Error> {
    let Some(part) = &mount.part else {
        return Ok((None, mount.from.clone()));
    };
    let opened = open_inside(&mount.from, part).map_err(root_error(&mount.from.join(part)))?;
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    Ok((Some(opened), path.into()))
}

/// Binds a file or folder of the machine, or copies a symbolic link.
fn bind_from_host(there: &Path, here: &Path) -> Result<(), Error> {
    let kind = match fs::symlink_metadata(there) {
        // It was removed after the folder was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        kind => kind.map_err(root_error(there))?,
    };
    if kind.is_symlink() {
        let target: PathBuf = fs::read_link(there).map_err(root_error(there))?;
        return symlink(target, here).map_err(root_error(here));
    }
    match bind(there, here) {
        // Files that this user may not read are left out.
        Err(Error::Root { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            Ok(())
        }
        done => done,
    }
}

fn bind(there: &Path, here: &Path) -> Result<(), Error> {
    let made = if fs::metadata(there).map_err(root_error(there))?.is_dir() {
        fs::create_dir_all(here)
    } else if here.is_file() {
        // A program that runs cannot be opened for writing.
        Ok(())
    } else {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(here)
            .map(drop)
    };
    made.map_err(root_error(here))?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    let bound = mount(Some(there), here, None::<&OsStr>, flags, None::<&OsStr>);
    bound.map_err(|error| root_error(there)(error.into()))
}

/// Remounts read-only; the flags of the existing mount must be kept.
fn remount_read_only(here: &Path) -> Result<(), Error> {
    let has = statvfs(here)
        .map_err(|error| root_error(here)(error.into()))?
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
    done.map_err(|error| root_error(here)(error.into()))
}

fn root_error(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Root {
        path: path.to_owned(),
        source,
    }
}
