//! Who looks on while a process works. Tests do; in production nobody does.

use std::fmt;

use super::Echoes;

/// Is told of every reconcile that begins.
pub trait Observer: fmt::Debug + Send + Sync {
    /// The number by which the reconcile knows itself from now on: see
    /// [`at_work`](super::at_work).
    fn begins(&self, beginning: &Beginning<'_>) -> u64;
}

/// A reconcile that is about to read what the watches show.
#[derive(Debug)]
pub struct Beginning<'a> {
    /// Of which controller.
    pub controller: &'static str,
    /// For which key.
    pub key: &'a dyn fmt::Debug,
    /// What it will read.
    pub watches: &'a dyn Echoes,
}
