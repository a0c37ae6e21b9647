//! The volumes of a pod and their contents.
//!
//! Files from objects are written as a kubelet writes them: the files of one state are in one
//! folder, and a symbolic link points to it. When an object changes, the link is replaced to point
//! to a new folder, so that a process sees the old files or the new ones, and never some of each.

mod content;
mod files;
mod host_path;
mod sub_path;
#[cfg(test)]
mod tests;

pub use self::{
    content::{VolumeContent, VolumeFile, VolumeFiles, content},
    files::write,
    host_path::HostPathType,
};
pub(super) use self::{
    files::{create_private_folder, write_text},
    host_path::{VolumePath, ensure_host_path},
    sub_path::{SubPath, leads_out, open_inside},
};
