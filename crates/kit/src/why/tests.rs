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

#[test]
fn every_error_of_this_crate_leads_to_an_entry_about_it() {
    use crate::{
        apply, audit, key::Key, lease, manager, operation::JournalError, telemetry::Format, watch,
    };
    let key = || Key::new("shop", "cart");
    let waited = std::time::Duration::from_secs(1);
    let path = std::path::PathBuf::from("audit.jsonl");
    let following = lease::NotLeading { holder: None };
    let (names, grace) = (vec![], waited);
    let fault = audit::Fault::Edited { index: 1 };
    let source = std::io::Error::other("full");
    let version = "1".to_owned();
    #[rustfmt::skip]
    let errors: [(&dyn Coded, &str); 14] = [
        (&manager::Error::Ended("x"), "a part of the process ended"),
        (&manager::Error::Late { names, grace }, "the process did not end"),
        (&following, "this process does not lead"),
        (&apply::Error::NotLeading(following.clone()), "this process does not lead"),
        (&apply::Error::Replaced(key()), "somebody else changed"),
        (&apply::Error::Late { key: key(), waited }, "no answer to a write"),
        (&lease::Error::Nameless, "nobody can be elected so"),
        (&watch::Late { version, waited }, "a write is not seen yet"),
        (&JournalError::Missing, "there is no such operation"),
        (&JournalError::Conflict, "somebody else changed"),
        (&JournalError::Unreachable("x".into()), "operations cannot be"),
        (&audit::Error::Damaged { path: path.clone(), fault }, "the audit file is not"),
        (&audit::Error::Disk { path, source }, "the audit cannot be"),
        (&"xml".parse::<Format>().unwrap_err(), "log lines cannot be"),
    ];
    for (error, title) in errors {
        let entry = find(error.code().0).unwrap();
        assert!(
            entry.title.starts_with(title),
            "{}: {}",
            entry.code,
            entry.title
        );
    }
}
