use std::{collections::BTreeSet, fs, path::Path};

use super::*;

#[test]
fn codes_are_well_formed_and_used_once() {
    let mut seen = BTreeSet::new();
    for entry in all() {
        let parts: Vec<_> = entry.code.0.split('-').collect();
        let [prefix, area, number] = parts[..] else {
            panic!("{} does not have three parts", entry.code);
        };
        assert_eq!(prefix, "NT");
        assert!(area.bytes().all(|byte| byte.is_ascii_uppercase()), "{area}");
        assert!(
            matches!(number.len(), 3 | 4) && number.parse::<u16>().is_ok(),
            "{number}"
        );
        assert!(seen.insert(entry.code), "{} is given twice", entry.code);
    }
}

#[test]
fn every_entry_has_a_cause_and_a_remedy() {
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
fn a_code_is_found_in_any_case() {
    assert_eq!(
        find(" nt-kit-001 ").map(|entry| entry.code),
        Some(Code("NT-KIT-001"))
    );
    assert_eq!(find("NT-KIT-999"), None);
    assert!(find("nt-up-0010").is_some());
}

#[test]
fn an_unknown_code_leads_to_similar_ones() {
    for (typed, first) in [
        ("NT-UP-010", "NT-UP-0010"),
        ("UP-0014", "NT-UP-0014"),
        ("nt-kit-0010", "NT-KIT-010"),
        ("NT-KTI-011", "NT-KIT-011"),
        ("NT-CIL-0003", "NT-CLI-0003"),
        ("NT-UP-3", "NT-UP-0003"),
    ] {
        let near: Vec<_> = nearest(typed).iter().map(|entry| entry.code.0).collect();
        assert_eq!(near.first(), Some(&first), "{typed}: {near:?}");
        assert!(near.len() <= 3, "{near:?}");
    }
    assert_eq!(nearest("tea"), [] as [&CatalogueEntry; 0]);
}

/// The codes in the sources of all crates, except in tests, which invent some.
fn codes_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !matches!(&*name, "tests" | "why") {
            codes_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let codes = text
                .split('"')
                .filter(|word| word.starts_with("NT-") && word.len() > 3);
            found.extend(codes.map(str::to_owned));
        }
    }
}

#[test]
fn every_code_of_the_program_is_in_the_catalogue() {
    let mut found = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for one in fs::read_dir(crates).unwrap() {
        let source = one.unwrap().path().join("src");
        if source.is_dir() {
            codes_below(&source, &mut found);
        }
    }
    assert!(found.len() > 30, "{found:?}");
    let unknown: Vec<_> = found.iter().filter(|code| find(code).is_none()).collect();
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
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
    let fault = audit::ChainFault::Edited { index: 1 };
    let source = std::io::Error::other("full");
    let version = "1".to_owned();
    #[rustfmt::skip]
    let errors: [(&dyn Coded, &str); 14] = [
        (&manager::Error::Ended("x"), "a component of the process ended"),
        (&manager::Error::ShutdownTimeout { names, grace }, "the process did not stop"),
        (&following, "this process does not lead"),
        (&apply::Error::NotLeading(following.clone()), "this process does not lead"),
        (&apply::Error::Conflict(key()), "the object was changed"),
        (&apply::Error::Timeout { key: key(), waited }, "no response to a write"),
        (&lease::Error::MissingIdentity, "the election options are not valid"),
        (&watch::WatchTimeout { version, waited }, "a write is not observed yet"),
        (&JournalError::Missing, "the operation does not exist"),
        (&JournalError::Conflict, "the object was changed"),
        (&JournalError::Unreachable("x".into()), "operations cannot be"),
        (&audit::Error::Damaged { path: path.clone(), before: 0, fault }, "the audit file was changed"),
        (&audit::Error::Disk { path, source }, "the audit cannot be"),
        (&"xml".parse::<Format>().unwrap_err(), "the log options are not valid"),
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
