//! The name that was probably meant.

/// The number of edits between a name and what was meant by it.
const MAX_DISTANCE: usize = 3;

/// The nearest of `names` to what was typed, if one is near. Case does not count.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = letters(typed);
    let near = names
        .into_iter()
        .map(|name| (distance(&typed, &letters(name)), name));
    let near = near.filter(|(distance, name)| *distance <= MAX_DISTANCE.min(name.len() / 2));
    near.min().map(|(_, name)| name)
}

fn letters(name: &str) -> Vec<char> {
    name.to_lowercase().chars().collect()
}

/// The edit distance: insertions, deletions, substitutions and swaps of neighbours.
pub(crate) fn distance(one: &[char], other: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *b && other[j - 1] == *a {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_remote_one_is_not() {
        let names = ["cooldown", "target", "min-replicas"];
        for (typed, expected) in [
            ("cooldwon", Some("cooldown")),
            ("Target", Some("target")),
            ("min-replica", Some("min-replicas")),
            ("min_replicas", Some("min-replicas")),
            ("threshold", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed}");
        }
        assert_eq!(nearest("x", ["a"]), None, "short names are all near");
    }
}
