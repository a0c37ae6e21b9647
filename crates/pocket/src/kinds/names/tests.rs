use proptest::prelude::*;

use super::*;

fn long(length: usize) -> String {
    "a".repeat(length)
}

#[test]
fn labels_are_short_lower_case_words() {
    for good in ["a", "a-b", "0", "9a", long(63).as_str()] {
        assert_eq!(label(good), Complaints::new(), "{good}");
    }
    for bad in ["", "-a", "a-", "A", "a..b", "a_b", "ä"] {
        assert_eq!(label(bad), [LABEL_FORM], "{bad}");
    }
    assert_eq!(label("a.b"), ["must not contain dots"]);
    assert_eq!(label(&long(64)), ["must be no more than 63 characters"]);
}

#[test]
fn subdomains_are_labels_joined_by_dots() {
    for good in ["a", "a.b-c.0", long(253).as_str()] {
        assert_eq!(subdomain(good), Complaints::new(), "{good}");
    }
    for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "Up"] {
        assert_eq!(subdomain(bad), [SUBDOMAIN_FORM], "{bad}");
    }
    assert_eq!(
        subdomain(&long(254)),
        ["must be no more than 253 characters"]
    );
}

#[test]
fn service_names_start_with_a_letter() {
    assert_eq!(label_1035("a1"), Complaints::new());
    assert_eq!(label_1035("1a"), [LABEL_1035_FORM]);
}

#[test]
fn path_segments_hold_anything_but_slashes_and_dots() {
    assert_eq!(path_segment("system:node"), Complaints::new());
    assert_eq!(path_segment(".."), ["may not be '..'"]);
    assert_eq!(
        path_segment("a/b%"),
        ["may not contain '/'", "may not contain '%'"]
    );
}

#[test]
fn qualified_names_have_at_most_one_prefix() {
    for good in ["a", "A_b.c", "example.com/Name", "9/9"] {
        assert_eq!(qualified(good), Complaints::new(), "{good}");
    }
    let form = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let empty = "name part must be non-empty".to_owned();
    for (bad, complaints) in [
        ("", vec![empty.clone(), format!("name part {form}")]),
        ("/a", vec!["prefix part must be non-empty".to_owned()]),
        ("a/", vec![empty, format!("name part {form}")]),
        ("A/a", vec![format!("prefix part {SUBDOMAIN_FORM}")]),
        ("a b", vec![format!("name part {form}")]),
        (
            "a/b/c",
            vec![format!(
                "a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )],
        ),
    ] {
        assert_eq!(qualified(bad), complaints, "{bad}");
    }
    assert_eq!(
        qualified(&long(64)),
        ["name part must be no more than 63 bytes"]
    );
}

#[test]
fn label_values_may_be_empty() {
    assert_eq!(label_value(""), Complaints::new());
    assert_eq!(label_value("-a"), [LABEL_VALUE_FORM]);
}

#[test]
fn config_keys_are_file_names() {
    for good in ["a", ".hidden", "A_b-c.d", "-"] {
        assert_eq!(config_key(good), Complaints::new(), "{good}");
    }
    assert_eq!(config_key("a b"), [KEY_FORM]);
    assert_eq!(config_key(".."), ["must not be '..'"]);
    assert_eq!(config_key("..a"), ["must not start with '..'"]);
}

#[test]
fn port_names_are_iana_service_names() {
    for good in ["http", "a-1", "9a"] {
        assert_eq!(port_name(good), Complaints::new(), "{good}");
    }
    for (bad, complaint) in [
        ("80", "must contain at least one letter (a-z)"),
        ("a--b", "must not contain consecutive hyphens"),
        ("a-", "must not begin or end with a hyphen"),
        ("abcdefghijklmnop", "must be no more than 15 characters"),
    ] {
        assert_eq!(port_name(bad), [complaint], "{bad}");
    }
}

#[test]
fn variables_may_not_hold_an_equals_sign() {
    assert_eq!(variable("my.VAR 1"), Complaints::new());
    assert_eq!(variable("a=b"), [VARIABLE_FORM]);
    assert_eq!(variable(""), [VARIABLE_FORM]);
}

fn matches(pattern: &str, text: &str) -> bool {
    regex::Regex::new(&format!("^(?:{pattern})$"))
        .unwrap()
        .is_match(text)
}

proptest! {
    /// The hand-written scanners agree with the expressions their own messages publish.
    #[test]
    fn scanners_agree_with_the_published_expressions(text in "[-a-cA-C0-2._/]{0,8}") {
        let label_re = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
        prop_assert_eq!(label(&text).is_empty(), matches(label_re, &text));
        let dotted = format!("{label_re}(\\.{label_re})*");
        prop_assert_eq!(subdomain(&text).is_empty(), matches(&dotted, &text));
        let old = "[a-z]([-a-z0-9]*[a-z0-9])?";
        prop_assert_eq!(label_1035(&text).is_empty(), matches(old, &text));
        let value = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
        prop_assert_eq!(label_value(&text).is_empty(), matches(value, &text));
    }
}
