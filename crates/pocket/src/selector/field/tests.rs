use proptest::prelude::*;

use super::*;
use crate::selector::MAX_REQUIREMENTS;

fn parts(text: &str) -> Vec<(String, bool, String)> {
    let selector = FieldSelector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let requirements = selector.requirements().iter();
    requirements
        .map(|r| (r.path.to_string(), r.equal, r.value.to_string()))
        .collect()
}

#[test]
fn terms_are_read() {
    let term = |path: &str, equal, value: &str| vec![(path.to_owned(), equal, value.to_owned())];
    for (text, expected) in [
        ("", vec![]),
        (",,", vec![]),
        ("metadata.name=x", term("metadata.name", true, "x")),
        ("metadata.name==x", term("metadata.name", true, "x")),
        ("metadata.name!=x", term("metadata.name", false, "x")),
        ("a=", term("a", true, "")),
        ("a!=", term("a", false, "")),
        (r"a=b\,c", term("a", true, "b,c")),
        (r"a=b\=c", term("a", true, "b=c")),
        (r"a=b\\", term("a", true, r"b\")),
        (r"a=\\\,", term("a", true, r"\,")),
        ("a=x!y", term("a", true, "x!y")),
    ] {
        assert_eq!(parts(text), expected, "{text}");
    }
    assert_eq!(parts(r"a=b\\,c=d").len(), 2);
    assert_eq!(parts("a=b,c!=d").len(), 2);
}

#[test]
fn malformed_selectors_are_bad_requests_that_say_why() {
    for (text, expected) in [
        ("abc", "invalid selector: 'abc'; can't understand 'abc'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: =",
        ),
        (
            r"a=\n",
            r"invalid field selector: invalid escape sequence: \n",
        ),
        (
            "a=\\",
            "invalid field selector: invalid escape sequence: \\",
        ),
        (
            "a!==b",
            "invalid field selector: unescaped character in value: =",
        ),
    ] {
        let error = FieldSelector::parse(text).unwrap_err();
        assert_eq!(
            (error.code.as_u16(), error.message.as_str()),
            (400, expected),
            "{text}"
        );
    }
    let many = vec!["a=b"; MAX_REQUIREMENTS + 1].join(",");
    assert!(FieldSelector::parse(&many).is_err());
}

#[test]
fn the_lookup_decides_and_absent_is_empty() {
    let lookup = |path: &str| match path {
        "metadata.name" => Cow::Borrowed("x"),
        "status.phase" => Cow::Borrowed("Running"),
        _ => Cow::Borrowed(""),
    };
    for (text, expected) in [
        ("", true),
        ("metadata.name=x", true),
        ("metadata.name=y", false),
        ("metadata.name=x,status.phase!=Running", false),
        ("spec.nodeName=", true),
        ("spec.nodeName!=", false),
    ] {
        assert_eq!(
            FieldSelector::parse(text).unwrap().matches(lookup),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_single_name_is_known_for_indexing() {
    let selector = FieldSelector::parse("metadata.namespace=d,metadata.name=x").unwrap();
    assert_eq!(selector.exact_name(), Some("x"));
    assert_eq!(selector.exact_namespace(), Some("d"));
    let negative = FieldSelector::parse("metadata.name!=x").unwrap();
    assert_eq!(negative.exact_name(), None);
}

#[test]
fn unknown_fields_are_refused() {
    let selector = FieldSelector::parse("metadata.name=x,status.foo=y").unwrap();
    let error = selector.check(|path| path == "metadata.name").unwrap_err();
    assert_eq!(error.message, "field label not supported: status.foo");
    assert!(selector.check(|_| true).is_ok());
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same(list in prop::collection::vec(("[a-z.]{1,8}", any::<bool>(), "[a-z,=\\\\!]{0,8}"), 0..5)) {
        let requirements = list.into_iter().map(|(path, equal, value)| FieldRequirement {
            path: path.into(), equal, value: value.into(),
        }).collect();
        let selector = FieldSelector::all_of(requirements);
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = FieldSelector::parse(&text);
    }
}
