use proptest::prelude::*;

use super::*;
use crate::payload_image::info::tests::payload;

#[test]
fn images_are_changed_rebuilt_added_or_removed() {
    let commit = |id: &'static str| -> &'static [(&'static str, &'static str)] {
        match id {
            "one" => &[
                (COMMIT_ID, "one"),
                (SOURCE_LOCATION, "https://github.com/ex/a"),
            ],
            _ => &[
                (COMMIT_ID, "two"),
                (SOURCE_LOCATION, "https://github.com/ex/a"),
            ],
        }
    };
    let from = payload(
        "4.98.7",
        &[
            ("a", "1", commit("one")),
            ("b", "2", &[]),
            ("same", "3", &[]),
            ("gone", "4", &[]),
        ],
    );
    let to = payload(
        "4.99.0",
        &[
            ("a", "1x", commit("two")),
            ("b", "2x", &[]),
            ("same", "3", &[]),
            ("new", "5", &[]),
        ],
    );
    let found = difference(&from, &to);
    let kinds: Vec<_> = found
        .changed_images
        .values()
        .map(|it| (it.name.as_str(), it.kind()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("a", Kind::Changed),
            ("b", Kind::Rebuilt),
            ("gone", Kind::Removed),
            ("new", Kind::Added)
        ]
    );
    let text = found.to_text(true);
    assert!(
        text.contains("https://github.com/ex/a/compare/one...two"),
        "{text}"
    );
    assert!(
        text.contains("Upgrade From:") && text.contains("Yes"),
        "{text}"
    );
    let value: serde_json::Value = serde_json::from_str(&found.to_json().unwrap()).unwrap();
    assert_eq!(
        value["changedImages"]["gone"]["to"],
        serde_json::Value::Null
    );
    assert_eq!(value["from"]["image"], "reg.example/ocp/release:4.98.7");
}

proptest! {
    #[test]
    fn a_payload_is_not_different_from_itself(names in prop::collection::btree_set("[a-z]{1,5}", 0..6)) {
        let tags: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), &[] as &[_])).collect();
        let one = payload("4.99.0", &tags);
        let found = difference(&one, &one);
        prop_assert!(found.is_empty());
        prop_assert!(found.to_text(false).starts_with("The payloads are the same"));
    }
}
