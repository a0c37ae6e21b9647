//! The field that was probably meant.

/// The number of edits between a name and what was meant by it.
const MAX_DISTANCE: usize = 3;

/// The nearest of `names`, if one is near.
pub(super) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let near = names.map(|name| (distance(&typed, &name.to_lowercase()), name));
    let near = near.filter(|(distance, name)| *distance <= MAX_DISTANCE.min(name.len() / 2));
    near.min().map(|(_, name)| name)
}

/// The number of letters that have to be added, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<_> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
