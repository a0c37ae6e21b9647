//! The volumes of a pod: what is in them, and how it gets there.
//!
//! What comes from objects is written as a kubelet writes it: the files of one state are in one
//! folder, and a link leads there. When an object changes, the link is turned to a new folder, so
//! that a process sees the old files or the new ones, and never some of each.

mod content;
mod files;
mod machine;
#[cfg(test)]
mod tests;

pub use self::{
    content::{Content, Files, Text, content},
    files::write,
    machine::Wanted,
};
pub(super) use self::{
    files::{folder_of_ones_own, put_text},
    machine::{Place, provide},
};
