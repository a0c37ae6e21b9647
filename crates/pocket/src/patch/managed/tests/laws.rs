//! Properties of field sets.

use proptest::prelude::*;

use super::*;

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[a-c]{1,2}".prop_map(|name| Element::field(&name)),
        "[a-b\"\\\\é\n]{0,2}".prop_map(|text| Element::value(&json!(text))),
        (0..3_i64).prop_map(|n| Element::value(&json!(n))),
        (0..3_usize).prop_map(Element::index),
        ("[a-b\"]{1,2}", 0..2).prop_map(|(name, port)| {
            let text = json!({"name": name, "port": port}).to_string();
            Element::parse(&format!("k:{text}")).unwrap()
        }),
    ]
}

fn paths() -> impl Strategy<Value = Vec<Vec<Element>>> {
    let path = proptest::collection::vec(element(), 1..4);
    proptest::collection::vec(path, 0..12)
}

fn set_of(paths: &[Vec<Element>]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        set.insert(path);
    }
    set
}

fn both_within(left: &FieldSet, right: &FieldSet) -> bool {
    let both = left.intersection(right);
    both.is_subset(left) && both.is_subset(right)
}

proptest! {
    #[test]
    fn fields_v1_round_trips(paths in paths()) {
        let set = set_of(&paths);
        let text = set.clone().into_fields_v1().to_string();
        let read = FieldSet::from_fields_v1(&serde_json::from_str(&text).unwrap());
        prop_assert_eq!(read.unwrap(), set);
    }

    #[test]
    fn the_algebra_is_that_of_sets(a in paths(), b in paths(), probe in paths()) {
        let (left, right) = (set_of(&a), set_of(&b));
        let union = left.clone().union(right.clone());
        let difference = left.clone().difference(&right);
        let both = left.intersection(&right);
        let deep = left.clone().recursive_difference(&right);
        for path in a.iter().chain(&b).chain(&probe) {
            let (l, r) = (left.contains(path), right.contains(path));
            prop_assert_eq!(union.contains(path), l || r);
            prop_assert_eq!(difference.contains(path), l && !r);
            prop_assert_eq!(both.contains(path), l && r);
            let above = (0..=path.len()).any(|n| right.contains(&path[..n]));
            prop_assert_eq!(deep.contains(path), l && !above);
        }
        prop_assert_eq!(left.is_empty(), a.is_empty());
        prop_assert_eq!(&union, &right.clone().union(left.clone()));
        // Canonical: the same members make the same value, whatever operations led to it.
        prop_assert_eq!(&difference.union(both), &left);
        prop_assert!(left.clone().difference(&left).is_empty());
        let within = a.iter().all(|path| right.contains(path));
        prop_assert_eq!(left.is_subset(&right), within);
        prop_assert!(both_within(&left, &right));
    }

    #[test]
    fn leaves_are_the_members_with_nothing_below(paths in paths()) {
        let set = set_of(&paths);
        let leaves = set.leaves();
        for path in &paths {
            let below = paths.iter().any(|p| p.len() > path.len() && p.starts_with(path));
            prop_assert_eq!(leaves.contains(path), !below);
        }
    }

    #[test]
    fn visiting_finds_every_member_once(paths in paths()) {
        let set = set_of(&paths);
        let mut found = Vec::new();
        set.for_each(&mut |path| found.push(path.iter().map(|&e| e.clone()).collect::<Vec<_>>()));
        let mut expected = paths;
        expected.sort();
        expected.dedup();
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
