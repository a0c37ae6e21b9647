use std::collections::BTreeSet;

use super::*;

#[test]
fn codes_are_well_formed_and_used_once() {
    let mut seen = BTreeSet::new();
    for entry in all() {
        let parts: Vec<_> = entry.code.0.split('-').collect();
        let [prefix, area, number] = parts[..] else {
            panic!("{} has not three parts", entry.code);
        };
        assert_eq!(prefix, "NT");
        assert!(area.bytes().all(|byte| byte.is_ascii_uppercase()), "{area}");
        assert!(
            number.len() == 3 && number.parse::<u16>().is_ok(),
            "{number}"
        );
        assert!(seen.insert(entry.code), "{} is given twice", entry.code);
    }
}

#[test]
fn every_entry_says_why_and_what_to_do() {
    for entry in all() {
        for (what, text) in [("cause", entry.cause), ("remedy", entry.remedy)] {
            assert!(
                text.len() > 20 && text.ends_with('.'),
                "{} {what}: {text}",
                entry.code
            );
        }
        assert!(
            entry.title.starts_with(|first: char| first.is_lowercase()),
            "{}",
            entry.title
        );
        assert!((400..600).contains(&entry.http), "{}", entry.http);
        let is_bug = entry.class == Class::PlatformBug;
        assert_eq!(is_bug, entry.http == 500, "only a bug is an internal error");
    }
}

#[test]
fn a_code_is_found_as_people_type_it() {
    assert_eq!(
        find(" nt-kit-001 ").map(|entry| entry.code),
        Some(Code("NT-KIT-001"))
    );
    assert_eq!(find("NT-KIT-999"), None);
}
