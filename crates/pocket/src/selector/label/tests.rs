use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::selector::{MAX_LENGTH, MAX_REQUIREMENTS};

fn selects(selector: &str, labels: &Value) -> bool {
    let selector = LabelSelector::parse(selector).unwrap_or_else(|e| panic!("{selector}: {e}"));
    selector.matches(labels.as_object().unwrap())
}

#[test]
fn operators_match_as_documented() {
    let labels = json!({"app": "web", "tier": "front", "empty": "", "n": "5", "in": "x"});
    for (selector, expected) in [
        ("", true),
        ("  ", true),
        ("app=web", true),
        ("app==web", true),
        (" app = web ", true),
        ("app=db", false),
        ("app!=db", true),
        ("app!=web", false),
        ("missing!=x", true),
        ("app in (web,db)", true),
        ("app in (db)", false),
        ("app notin (db, cache)", true),
        ("app notin (web)", false),
        ("missing notin (a)", true),
        ("missing in (a)", false),
        ("app", true),
        ("missing", false),
        ("!missing", true),
        ("! missing", true),
        ("!app", false),
        ("empty=", true),
        ("empty in (,x)", true),
        ("empty in ()", true),
        ("app in ()", false),
        ("app notin ()", true),
        ("app=,tier=front", false),
        ("app=web,tier=front", true),
        ("app=web,tier=back", false),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("n<5", false),
        ("app>1", false),
        ("missing<1", false),
        ("in=x", true),
        ("in in (x)", true),
        ("in", true),
        ("app\t=\nweb", true),
    ] {
        assert_eq!(selects(selector, &labels), expected, "{selector}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn malformed_selectors_are_bad_requests_that_say_why() {
    for (selector, expected) in [
        (
            "=x",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            ",",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a=(",
            "unable to parse requirement: found '(', expected: identifier",
        ),
        (
            "a>x",
            r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#,
        ),
        (
            "a/b/c=d",
            r#"unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"#,
        ),
        (
            "/b=d",
            r#"unable to parse requirement: <nil>: Invalid value: "/b": prefix part must be non-empty"#,
        ),
        (
            "A.com/b=d",
            r#"unable to parse requirement: <nil>: Invalid value: "A.com/b": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
        ),
        (
            "a/=d",
            r#"unable to parse requirement: <nil>: Invalid value: "a/": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ),
        (
            "-a=d",
            r#"unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ),
        (
            "a=b$",
            r#"unable to parse requirement: values[0][a]: Invalid value: "b$": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
        ),
        (
            "a=é",
            r#"unable to parse requirement: values[0][a]: Invalid value: "é": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
        ),
    ] {
        let error = LabelSelector::parse(selector).unwrap_err();
        assert_eq!(error.code.as_u16(), 400, "{selector}");
        assert_eq!(error.message, expected, "{selector}");
    }
}

#[test]
fn lengths_of_keys_and_values_are_those_of_labels() {
    let (ok, long) = ("a".repeat(63), "a".repeat(64));
    assert!(LabelSelector::parse(&format!("{ok}={ok}")).is_ok());
    assert!(LabelSelector::parse(&format!("{long}=x")).is_err());
    assert!(LabelSelector::parse(&format!("x={long}")).is_err());
    assert!(LabelSelector::parse(&format!("{}/x", "a".repeat(254))).is_err());
}

#[test]
fn huge_selectors_are_refused() {
    let many = vec!["a"; MAX_REQUIREMENTS].join(",");
    assert!(LabelSelector::parse(&many).is_ok());
    let error = LabelSelector::parse(&format!("{many},b")).unwrap_err();
    assert!(error.message.contains("at most 1000 requirements"));
    let error = LabelSelector::parse(&"a".repeat(MAX_LENGTH + 1)).unwrap_err();
    assert!(error.message.contains("at most 65536"));
}

#[test]
fn selector_objects_mean_their_labels_and_expressions() {
    let labels = json!({"app": "web", "tier": "front"});
    for (object, expected) in [
        (json!({}), true),
        (json!({"matchLabels": {"app": "web"}}), true),
        (
            json!({"matchLabels": {"app": "web", "tier": "back"}}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
            false,
        ),
    ] {
        let selector = LabelSelector::from_object(Some(&object)).unwrap();
        assert_eq!(
            selector.matches(labels.as_object().unwrap()),
            expected,
            "{object}"
        );
    }
    let none = LabelSelector::from_object(None).unwrap();
    assert!(!none.matches(labels.as_object().unwrap()) && !none.is_everything());
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let error = LabelSelector::from_object(Some(&bad)).unwrap_err();
    assert_eq!(
        error.message,
        "\"Like\" is not a valid label selector operator"
    );
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]});
    assert!(LabelSelector::from_object(Some(&bad)).is_err());
}

#[test]
fn an_empty_map_selects_nothing() {
    let map = json!({"app": "web"});
    let object = json!({"metadata": {"labels": {"app": "web"}}});
    assert!(
        LabelSelector::from_map(Some(&map))
            .unwrap()
            .matches_object(&object)
    );
    assert!(
        !LabelSelector::from_map(Some(&json!({})))
            .unwrap()
            .matches_object(&object)
    );
    assert!(
        !LabelSelector::from_map(None)
            .unwrap()
            .matches_object(&object)
    );
}

#[test]
fn an_object_without_labels_is_matched_as_one_with_none() {
    assert!(
        LabelSelector::parse("!a")
            .unwrap()
            .matches_object(&json!({}))
    );
    assert!(
        !LabelSelector::parse("a")
            .unwrap()
            .matches_object(&json!({"metadata": {}}))
    );
}

fn a_requirement() -> impl Strategy<Value = Requirement> {
    let key = "([a-z]{1,4}\\.io/)?[a-zA-Z]([a-z0-9_.-]{0,6}[a-z0-9])?";
    let value = "([a-z0-9]([a-z0-9_.-]{0,6}[a-z0-9])?)?";
    (key, 0..6, prop::collection::vec(value, 1..4), any::<i64>()).prop_map(
        |(key, op, values, n)| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let n = n.unsigned_abs() / 2;
            let n = n.to_string();
            let (operator, values): (_, &[&str]) = match op {
                0 => (Operator::In, &values),
                1 => (Operator::NotIn, &values),
                2 => (Operator::Exists, &[]),
                3 => (Operator::DoesNotExist, &[]),
                4 => (Operator::GreaterThan, &[&n]),
                _ => (Operator::LessThan, &[&n]),
            };
            Requirement::new(&key, operator, values).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same(list in prop::collection::vec(a_requirement(), 0..5)) {
        let selector = LabelSelector::all_of(list);
        let again = LabelSelector::parse(&selector.to_string()).unwrap();
        prop_assert_eq!(again, selector);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c/!=<>(), inot\\PC]{0,40}") {
        let _ = LabelSelector::parse(&text);
    }

    #[test]
    fn a_requirement_and_its_opposite_split_the_objects(value in "[ab]?", listed in prop::collection::vec("[ab]?", 1..3)) {
        let labels = json!({"k": value});
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        let within = Requirement::new("k", Operator::In, &listed).unwrap();
        let without = Requirement::new("k", Operator::NotIn, &listed).unwrap();
        let labels = labels.as_object().unwrap();
        prop_assert!(within.matches(labels) != without.matches(labels));
    }
}
