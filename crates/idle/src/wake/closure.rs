//! The services that are woken with a service.

use std::collections::{HashSet, VecDeque};

/// `first` and its direct and indirect dependencies, each once and in breadth-first order, with the name
/// of the one that depends on it. Names for which `dependencies` has nothing are left out.
pub(super) fn closure<'a, T>(
    first: &str,
    dependencies: impl Fn(&str) -> Option<(T, &'a [String])>,
) -> Vec<(T, Option<String>)> {
    let mut seen = HashSet::from([first.to_owned()]);
    let mut waiting = VecDeque::from([(first.to_owned(), None)]);
    let mut found = Vec::new();
    while let Some((name, by)) = waiting.pop_front() {
        let Some((one, needed)) = dependencies(&name) else {
            continue;
        };
        found.push((one, by));
        for next in needed {
            if seen.insert(next.clone()) {
                waiting.push_back((next.clone(), Some(name.clone())));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Needs = BTreeMap<String, Vec<String>>;

    fn woken(needs: &Needs, first: &str) -> Vec<(String, Option<String>)> {
        closure(first, |name| {
            let (name, needed) = needs.get_key_value(name)?;
            Some((name.clone(), &needed[..]))
        })
    }

    fn needs(rows: &[(&str, &[&str])]) -> Needs {
        let row = |(name, needed): &(&str, &[&str])| {
            let needed = needed.iter().map(ToString::to_string).collect();
            (name.to_string(), needed)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn each_dependency_is_woken_once() {
        let needs = needs(&[
            ("web", &["api", "cache"]),
            ("api", &["store", "gone"]),
            ("cache", &["store"]),
            ("store", &[]),
            ("other", &["web"]),
        ]);
        let woken = woken(&needs, "web");
        let shown: Vec<_> = woken
            .iter()
            .map(|(name, by)| (name.as_str(), by.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("web", None),
                ("api", Some("web")),
                ("cache", Some("web")),
                ("store", Some("api")),
            ]
        );
    }

    #[test]
    fn a_cycle_ends() {
        let needs = needs(&[("a", &["b", "a"]), ("b", &["a"])]);
        assert_eq!(woken(&needs, "a").len(), 2);
        assert_eq!(woken(&needs, "missing"), []);
    }

    proptest! {
        #[test]
        fn each_is_woken_once_with_its_dependencies(
            rows in prop::collection::btree_map("[a-f]", prop::collection::vec("[a-f]", 0..5), 1..6)
        ) {
            let first = rows.keys().next().unwrap().clone();
            let woken: Vec<_> = woken(&rows, &first).into_iter().map(|(name, _)| name).collect();
            let names: HashSet<_> = woken.iter().collect();
            prop_assert_eq!(names.len(), woken.len());
            for name in &woken {
                for needed in rows[name].iter().filter(|needed| rows.contains_key(*needed)) {
                    prop_assert!(names.contains(needed));
                }
            }
        }
    }
}
