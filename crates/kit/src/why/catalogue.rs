//! The entries of the catalogue, by area.

mod cli;
mod kit;
mod up;

use super::{Catalogue, CatalogueEntry};

/// What the program has without any area, ordered by area and number.
const OWN: [&[CatalogueEntry]; 3] = [cli::ENTRIES, kit::ENTRIES, up::ENTRIES];

/// The entries of this crate and of the command line. Those of areas are in their crates: see [`Catalogue`].
pub fn all() -> impl Iterator<Item = &'static CatalogueEntry> {
    OWN.into_iter().flatten()
}

impl Catalogue {
    /// The entries of this crate and of the command line, and then those of areas.
    pub fn with_areas(areas: impl IntoIterator<Item = &'static [CatalogueEntry]>) -> Self {
        Self {
            parts: OWN.into_iter().chain(areas).collect(),
        }
    }

    /// All entries.
    pub fn all(&self) -> impl Iterator<Item = &'static CatalogueEntry> {
        self.parts.iter().copied().flatten()
    }

    /// The entry of a code, in any case.
    pub fn find(&self, code: &str) -> Option<&'static CatalogueEntry> {
        let code = code.trim();
        self.all()
            .find(|entry| entry.code.0.eq_ignore_ascii_case(code))
    }
}

/// Without areas.
impl Default for Catalogue {
    fn default() -> Self {
        Self::with_areas([])
    }
}
