//! The entries of the catalogue, by area.

mod cli;
mod idle;
mod kit;
mod up;

use super::CatalogueEntry;

/// All entries, ordered by area and number.
pub fn all() -> impl Iterator<Item = &'static CatalogueEntry> {
    [cli::ENTRIES, idle::ENTRIES, kit::ENTRIES, up::ENTRIES]
        .into_iter()
        .flatten()
}
