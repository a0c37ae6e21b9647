//! Tests of the runner itself: what must fail does fail.

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use super::{pattern::matches, scenario::Scenario, variables::Variables};

/// The runner's own tests, beside the files.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("runner/patterns", patterns),
        Trial::test("runner/captures", captures),
        Trial::test("runner/files_that_cannot_fail_are_refused", refused_files),
    ]
}

/// Pattern, value, whether they match.
fn table() -> Vec<(Value, Value, bool)> {
    vec![
        (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
        (json!({"a": 1}), json!({"a": "1"}), false),
        (json!({"a": 1}), json!({"b": 1}), false),
        (json!({"a": null}), json!({}), false),
        (json!({}), json!({"a": 1}), false),
        (json!({"~only": true, "a": 1}), json!({"a": 1}), true),
        (
            json!({"~only": true, "a": 1}),
            json!({"a": 1, "b": 2}),
            false,
        ),
        (json!({"a": "~absent"}), json!({}), true),
        (json!({"a": "~absent"}), json!({"a": null}), false),
        (json!({"a": "~any"}), json!({"a": null}), true),
        (json!({"a": "~any"}), json!({}), false),
        (json!([1, 2]), json!([1, 2]), true),
        (json!([1]), json!([1, 2]), false),
        (json!([1, "..."]), json!([1, 2]), true),
        (json!(["...", 2, "..."]), json!([1, 2, 3]), true),
        (json!(["...", 2]), json!([1, 2, 3]), false),
        (json!([]), json!([1]), false),
        (json!("~rv"), json!("12"), true),
        (json!("~rv"), json!("0"), false),
        (json!("~time"), json!("2026-01-01T00:00:00Z"), true),
        (json!("~time"), json!("2026-01-01T00:00:00.1Z"), false),
        (json!("~regex ^a+$"), json!("aa"), true),
        (json!("~regex ^a+$"), json!("ab"), false),
        (json!("~contains b"), json!("abc"), true),
        (json!("~contains d"), json!("abc"), false),
        (json!("~unknown"), json!("~unknown"), false),
        (json!("~is ~unknown"), json!("~unknown"), true),
        (json!("> 9"), json!("10"), true),
        (json!("> 9"), json!("9"), false),
        (json!("<= 9"), json!(9), true),
        (json!("> 9"), json!("many"), false),
        (json!("!= $five"), json!("5"), false),
        (json!("$five"), json!("6"), false),
        (json!("$five"), json!("5"), true),
        (json!("number $five"), json!("number 5"), true),
        (json!("number $unknown"), json!("number $unknown"), false),
    ]
}

fn patterns() -> Result<(), Failed> {
    let mut variables = Variables::default();
    variables.set("five", "5");
    for (pattern, value, expected) in table() {
        if matches(&pattern, &value, &variables).is_some() != expected {
            return Err(format!("{pattern} and {value}: expected {expected}").into());
        }
    }
    Ok(())
}

fn captures() -> Result<(), Failed> {
    let pattern = json!({"a": "$x", "b": "$x", "c": "~regex ^<(?<y>.*)>$", "d": "> 1 as $z"});
    let value = json!({"a": "1", "b": "1", "c": "<2>", "d": "3"});
    let learned = matches(&pattern, &value, &Variables::default()).ok_or("no match")?;
    let found = ["x", "y", "z"].map(|name| learned.get(name).unwrap_or_default());
    if found != ["1", "2", "3"] {
        return Err(format!("captured {found:?}").into());
    }
    let twice = json!({"a": "1", "b": "2", "c": "<2>", "d": "3"});
    match matches(&pattern, &twice, &Variables::default()) {
        Some(_) => Err("a variable had two values".into()),
        None => Ok(()),
    }
}

fn refused_files() -> Result<(), Failed> {
    let get = "```http\nGET /x\n```\n";
    let files = [
        String::new(),
        get.to_owned(),
        format!("{get}```answer\n```\n"),
        format!("{get}```answer\n200 Fine\n```\n"),
        format!("{get}```answer\n200\n\na: $once\n```\n"),
        format!("{get}```answer\n200\n"),
        "```answer\n200\n```\n".to_owned(),
        "```json\n{}\n```\n".to_owned(),
        "```http\nGET nowhere\n```\n```answer\n200\n```\n".to_owned(),
        "```events w\n[]\n```\n".to_owned(),
        "```events w\n- ADDED\n```\n".to_owned(),
    ];
    for text in files {
        if Scenario::parse("own", &text).is_ok() {
            return Err(format!("accepted: {text}").into());
        }
    }
    let good = format!("{get}```answer\n200\n```\n");
    Ok(Scenario::parse("own", &good).map(drop)?)
}
