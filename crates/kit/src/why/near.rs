//! Suggestions for mistyped codes.

use super::{Catalogue, CatalogueEntry};
use crate::suggest::distance;

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;
/// The maximum edit distance of a suggestion.
const MAX_DISTANCE: usize = 2;

impl Catalogue {
    /// The entries whose codes are most similar to `typed`, the most similar first.
    pub fn nearest(&self, typed: &str) -> Vec<&'static CatalogueEntry> {
        let typed = normalized(typed);
        let mut near: Vec<_> = self
            .all()
            .map(|entry| (distance(&typed, &normalized(entry.code.0)), entry))
            .filter(|(distance, _)| *distance <= MAX_DISTANCE)
            .collect();
        near.sort_by_key(|(distance, entry)| (*distance, entry.code));
        near.truncate(MAX_SUGGESTIONS);
        near.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// The code without what users leave out: the prefix, dashes, and leading zeros.
fn normalized(code: &str) -> Vec<char> {
    let code = code.trim().to_ascii_uppercase();
    let code = code.strip_prefix("NT-").unwrap_or(&code);
    let at = code.find(|one: char| one.is_ascii_digit());
    let (area, number) = code.split_at(at.unwrap_or(code.len()));
    let number = number.trim_start_matches('0');
    let letters = area.chars().filter(|one| *one != '-');
    letters.chain(number.chars()).collect()
}
