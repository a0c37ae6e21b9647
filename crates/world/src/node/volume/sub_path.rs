//! Parts of volumes, which must not lead out of them.
//!
//! Containers write into volumes, symbolic links too. A part is therefore resolved by the kernel, in
//! one step and below its volume: a link that leads out of it is an error, whenever it was made.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2},
    io::Errno,
};

/// A part of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct SubPath {
    pub(in crate::node) volume: PathBuf,
    pub(in crate::node) part: PathBuf,
}

/// Whether an error says that a part leads out of its volume.
pub(in crate::node) fn leads_out(error: &io::Error) -> bool {
    let found = error.raw_os_error();
    [Errno::XDEV, Errno::LOOP]
        .iter()
        .any(|errno| found == Some(errno.raw_os_error()))
}

/// Opens a part of a volume, without access to its content.
pub(in crate::node) fn open_inside(volume: &Path, part: &Path) -> io::Result<OwnedFd> {
    let root = openat(CWD, volume, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    below(&root, part)
}

fn below(root: &OwnedFd, part: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let stay = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, part, flags, Mode::empty(), stay) {
        // Linux before 5.6, or a filter of system calls that does not know it.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(root, part),
        opened => Ok(opened?),
    }
}

/// Opens one part of the path after the other, and follows no links that are not part of this volume.
fn step_by_step(root: &OwnedFd, part: &Path) -> io::Result<OwnedFd> {
    let volume = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd())).canonicalize()?;
    let real = volume.join(part).canonicalize()?;
    let Ok(inside) = real.strip_prefix(&volume) else {
        return Err(Errno::XDEV.into());
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut place = root.try_clone()?;
    for name in inside.components() {
        place = openat(&place, name.as_os_str(), flags, Mode::empty())?;
    }
    Ok(place)
}

impl SubPath {
    /// Creates the folder, and those on the way to it.
    pub(in crate::node) fn create(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = openat(CWD, &self.volume, flags, Mode::empty())?;
        let (mut place, mut path) = (root.try_clone()?, PathBuf::new());
        for name in self.part.components() {
            if let Component::Normal(name) = name {
                match mkdirat(&place, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                path.push(name);
                place = below(&root, &path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
    };

    use super::*;

    fn volume() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let (volume, outside) = (parent.path().join("volume"), parent.path().join("outside"));
        for folder in [volume.join("own/data"), outside.join("data")] {
            fs::create_dir_all(folder).unwrap();
        }
        (parent, volume, outside)
    }

    #[test]
    fn links_within_a_volume_are_followed_and_links_out_of_it_are_refused() {
        let (_parent, volume, outside) = volume();
        symlink("own", volume.join("near")).unwrap();
        symlink("../outside", volume.join("up")).unwrap();
        symlink(&outside, volume.join("far")).unwrap();
        let wanted = fs::metadata(volume.join("own/data")).unwrap().ino();
        for open in [below, step_by_step] {
            let root = openat(CWD, &volume, OFlags::PATH, Mode::empty()).unwrap();
            let found = open(&root, Path::new("near/data")).unwrap();
            assert_eq!(rustix::fs::fstat(found).unwrap().st_ino, wanted);
            for part in ["up/data", "far/data", "far", "up"] {
                let refused = open(&root, Path::new(part)).unwrap_err();
                assert!(leads_out(&refused), "{part}: {refused}");
            }
        }
    }

    #[test]
    fn nothing_is_created_outside_of_the_volume() {
        let (_parent, volume, outside) = volume();
        symlink(&outside, volume.join("far")).unwrap();
        let at = |part: &str| SubPath {
            volume: volume.clone(),
            part: part.into(),
        };
        at("own/new/deep").create().unwrap();
        assert!(volume.join("own/new/deep").is_dir());
        assert!(leads_out(&at("far/new").create().unwrap_err()));
        assert!(!outside.join("new").exists());
    }
}
