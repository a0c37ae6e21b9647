//! The entries, by area.

mod cli;
mod idle;
mod kit;
mod up;

use super::Entry;

/// Every entry, by area and number.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    [cli::ENTRIES, idle::ENTRIES, kit::ENTRIES, up::ENTRIES]
        .into_iter()
        .flatten()
}
