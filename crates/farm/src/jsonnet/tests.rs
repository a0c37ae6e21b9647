use neap_kit::clock::Clock;
use rustix::process::Signal;
use serde_json::json;

use super::*;

fn request(files: &[(&str, &str)]) -> EvaluationRequest {
    let files = files.iter();
    EvaluationRequest {
        files: files
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        main: "main.jsonnet".to_owned(),
        variables: BTreeMap::from([("POD_NAME".to_owned(), "pod".to_owned())]),
    }
}

fn failure(files: &[(&str, &str)]) -> String {
    match evaluate(&request(files)) {
        EvaluationResponse::Failed(message) => message,
        EvaluationResponse::Value(value) => panic!("{value}"),
    }
}

#[test]
fn imports_and_variables_are_those_of_the_pod() {
    let files = [
        (
            "main.jsonnet",
            "local c = import 'common.libsonnet'; c + { pod: std.extVar('POD_NAME') }",
        ),
        ("common.libsonnet", "{ a: 1 }"),
    ];
    let value = json!({"a": 1, "pod": "pod"});
    assert_eq!(evaluate(&request(&files)), EvaluationResponse::Value(value));
}

#[test]
fn nothing_outside_of_the_config_map_is_read() {
    for text in [
        "import '/etc/passwd'",
        "import '../x'",
        "importstr 'x'",
        "importbin 'x'",
    ] {
        let message = failure(&[("main.jsonnet", text)]);
        assert!(message.contains("no such key"), "{text}: {message}");
    }
    let certificate = [("main.jsonnet", "importstr '/etc/passwd'")];
    let value = json!("/etc/passwd");
    assert_eq!(
        evaluate(&request(&certificate)),
        EvaluationResponse::Value(value)
    );
}

#[test]
fn failures_have_a_message() {
    assert!(failure(&[("main.jsonnet", "{ a: ")]).contains("no valid Jsonnet"));
    assert!(failure(&[("main.jsonnet", "error 'stop it'")]).contains("stop it"));
    assert!(failure(&[("main.jsonnet", "std.extVar('SECRET')")]).contains("SECRET"));
    let endless = "local f(x) = f(x + 1) + 1; f(0)";
    assert!(failure(&[("main.jsonnet", endless)]).contains("stack overflow"));
}

#[test]
fn messages_are_whole_and_readable() {
    for (text, expected) in [
        ("1 / 0", "it divides by zero"),
        ("error 'stop it'", "it ends with an error: stop it"),
        ("assert false : 'no'; 1", "an assertion fails: no"),
        ("{}.a", "an object has no field \"a\""),
        (
            "[1][2]",
            "the index 2 is out of range: there are 1 elements",
        ),
        (
            "{} - 1",
            "the operator - does not take an object and a number",
        ),
        ("if 1 then 2", "a condition is a number, not a boolean"),
        ("'a'()", "it calls a string, not a function"),
        (
            "(function(a) a)()",
            "a call does not set the parameter \"a\"",
        ),
        ("std.length(1)", "argument 1 of std.length is a number, not"),
        ("std.extVar('X')", "there is no external variable \"X\""),
        ("local a = a; a", "a value depends on itself"),
        (
            "function() 1",
            "its value contains a function, which JSON cannot have",
        ),
        ("1 << -1", "shift by negative"),
        (
            "{\n  a: ",
            "main.jsonnet is no valid Jsonnet: line 2: the file ends",
        ),
        ("{ a: 1 ]", "line 1: there is `]`"),
        ("{\n  a: b,\n}", "line 2: there is no variable \"b\""),
        ("'a", "line 1: a string has no end"),
        ("{a: 1, a: 2}", "line 1: the field \"a\" occurs twice"),
    ] {
        let message = failure(&[("main.jsonnet", text)]);
        assert!(message.contains(expected), "{text}: {message}");
        for torn in ["Span", "span", " { ", "len:", "Some("] {
            assert!(!message.contains(torn), "{text}: {message}");
        }
    }
}

#[tokio::test]
async fn an_evaluator_that_cannot_be_started_says_so() {
    let evaluator = EvaluatorProcess::new("/nowhere/neap".into(), Clock::system());
    let none = BTreeMap::new();
    let result = evaluator.evaluate(&none, "main.jsonnet", &none).await;
    assert!(
        matches!(result, Err(EvaluationError::Unavailable(_))),
        "{result:?}"
    );
}

#[tokio::test]
async fn an_evaluator_that_ends_without_an_answer_says_nothing_about_the_file() {
    let evaluator = EvaluatorProcess::new("/bin/false".into(), Clock::system());
    let none = BTreeMap::new();
    let result = evaluator.evaluate(&none, "main.jsonnet", &none).await;
    assert!(
        matches!(result, Err(EvaluationError::Unavailable(_))),
        "{result:?}"
    );
}

#[test]
fn only_the_bounds_of_the_evaluation_follow_from_the_file() {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};
    let ended = |output: Vec<u8>, status: i32| {
        let status = ExitStatus::from_raw(status);
        process::result(&process::Ended { output, status })
    };
    let signal = |signal: Signal| ended(Vec::new(), signal.as_raw()).unwrap_err();
    assert!(!signal(Signal::XCPU).is_transient());
    assert!(!signal(Signal::ABORT).is_transient());
    assert!(!signal(Signal::SEGV).is_transient());
    assert!(signal(Signal::KILL).is_transient(), "no memory in the pod");
    assert!(signal(Signal::TERM).is_transient());
    assert!(ended(Vec::new(), 1 << 8).unwrap_err().is_transient());
    let much = ended(vec![b'1'; 4 << 20], 0).unwrap_err();
    assert!(!much.is_transient(), "{much}");
    let failed = serde_json::to_vec(&EvaluationResponse::Failed("no".to_owned())).unwrap();
    assert!(!ended(failed, 0).unwrap_err().is_transient());
}
