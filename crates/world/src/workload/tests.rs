use std::collections::HashSet;

use super::*;

#[test]
fn names_follow_from_what_they_are_for() {
    assert_eq!(suffix(&["a", "1"]), suffix(&["a", "1"]));
    assert_ne!(suffix(&["a", "1"]), suffix(&["a1"]));
    let names: HashSet<_> = (0..1000)
        .map(|n: u32| suffix(&["uid", &n.to_string()]))
        .collect();
    assert_eq!(names.len(), 1000);
    assert!(names.iter().all(|name| name.len() == 5));
}
