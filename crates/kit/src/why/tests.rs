use std::collections::BTreeSet;

use super::*;

#[test]
fn codes_are_well_formed_and_used_once() {
    let mut seen = BTreeSet::new();
    for entry in all() {
        let area = entry.code.0.split('-').nth(1).unwrap();
        assert!(area.bytes().all(|byte| byte.is_ascii_uppercase()), "{area}");
        let found = problems(entry, &format!("NT-{area}-"));
        assert!(found.is_empty(), "{found:?}");
        assert!(seen.insert(entry.code), "{} is given twice", entry.code);
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
        let near: Vec<_> = Catalogue::default()
            .nearest(typed)
            .iter()
            .map(|entry| entry.code.0)
            .collect();
        assert_eq!(near.first(), Some(&first), "{typed}: {near:?}");
        assert!(near.len() <= 3, "{near:?}");
    }
    assert_eq!(
        Catalogue::default().nearest("tea"),
        [] as [&CatalogueEntry; 0]
    );
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
    let errors: [(&dyn Coded, &str); 15] = [
        (&manager::Error::DuplicateName("x"), "two components of the process"),
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

#[test]
fn a_response_of_the_api_server_is_its_message_and_its_reason() {
    let status = Status::failure("namespaces \"ocp\" not found", "NotFound").with_code(404);
    let error = kube::Error::Api(status.boxed());
    let wanted = "namespaces \"ocp\" not found (NotFound)";
    assert_eq!(chain(&error), wanted);
    let refused = crate::apply::Error::Refused {
        key: crate::key::Key::new("ocp", "4.99"),
        source: Box::new(error),
    };
    let wanted = format!("ocp/4.99 could not be written: {wanted}");
    assert_eq!(chain(&refused), wanted);
}
