//! Sets of completion indexes, as a status writes them: `0-2,5`.

use std::collections::BTreeSet;

pub(super) type Indexes = BTreeSet<i32>;

/// Parses the indexes of a status below `completions`.
pub(super) fn parse(text: &str, completions: i32) -> Indexes {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let last: i32 = last.parse().ok()?;
        Some(first.parse().ok()?..=last.min(completions.saturating_sub(1)))
    });
    ranges.flatten().collect()
}

/// Formats indexes for a status. Two neighbours are written with a comma, three or more as a range.
pub(super) fn format(indexes: &Indexes) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for &index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let words = ranges.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}
