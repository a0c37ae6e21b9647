use std::time::Duration;

use super::*;

const TEXT: &str = "\
plan orphan-after-stale-finalizer
workload fanout seed 7
on write.after verb=patch kind=pods name=p* #1 for controllers do crash stale 4
on write.before verb=create kind=pods/binding #2..5 for any do fail 429 retry-after 2s
on watch.event kind=endpointslices #every 3 for node do merge 20s
on write.before for any do conflict x 5
on watch.event #1 for any do dup
on write.after #3 for any do lag 3 kinds=pods,jobs until 1500ms
on ext.before call=make #1 for any do pause 90s
on ext.after name=network call=make for one do fail 504
";

#[test]
fn a_plan_reads_as_it_is_written() {
    let plans = parse(TEXT).unwrap();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].to_string(), TEXT);
    let rule = &plans[0].rules[5];
    let lag = Action::Lag(
        3,
        vec!["pods".into(), "jobs".into()],
        Duration::from_millis(1500),
    );
    assert_eq!(rule.action, lag);
}

#[test]
fn kinds_may_be_written_as_people_say_them() {
    let text = "plan a\nworkload w seed 1\non read kind=EndpointSlice for any do delay 1s\n";
    let plan = &parse(text).unwrap()[0];
    assert_eq!(plan.rules[0].filter.kind.as_deref(), Some("endpointslices"));
    for (kind, path) in [
        ("Pod", "pods"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Endpoints", "endpoints"),
        ("pods", "pods"),
    ] {
        assert_eq!(plural(kind), path);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let cases = [
        ("crash", "begins no line"),
        ("on read for any do crash", "no plan has begun"),
        ("plan a", "names no workload"),
        ("plan a\nworkload w seed x", "`x` is no number"),
    ];
    for (text, problem) in cases {
        is_wrong(text, problem);
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_told() {
    let cases = [
        (
            "on sql.before for any do crash",
            "a run in one process has no point sql.before",
        ),
        ("on nowhere for any do crash", "there is no point nowhere"),
        ("on read #0 for any do crash", "the first is #1"),
        (
            "on read colour=red for any do crash",
            "there is no filter colour",
        ),
        (
            "on read for any do explode",
            "has no action explode; it has crash, crash stale, pause",
        ),
        (
            "on read verb=put for any do crash",
            "there is no verb put; there are get, list",
        ),
        (
            "on read #5..2 for any do crash",
            "#5..2 has nothing in it: write #2..5",
        ),
        ("on read #every 0 for any do crash", "#every 0 is no step"),
        (
            "on read do crash",
            "`for` and an actor should come before `do`",
        ),
        ("on read for any do dup", "only a watch.event can do that"),
        ("on read for any do fail 200", "from 400 to 599"),
        ("on read for any do delay 5", "write 5s or 200ms"),
        ("on read for any do crash now", "nothing should follow"),
        ("on read for any", "the line ends where `do` should follow"),
    ];
    for (rule, problem) in cases {
        is_wrong(&format!("plan a\nworkload w seed 1\n{rule}"), problem);
    }
}

fn is_wrong(text: &str, problem: &str) {
    let error = parse(text).unwrap_err();
    assert!(error.problem.contains(problem), "{text}: {error}");
    assert_eq!(error.line, text.lines().count(), "{text}");
}

#[test]
fn systems_outside_are_named_by_what_is_asked_of_them() {
    for (rule, problem) in [
        (
            "read call=make for any do crash",
            "call= is of ext.before and ext.after",
        ),
        (
            "ext.after kind=pods for any do crash",
            "only the filters call= and name=",
        ),
        ("ext.after for any do dup", "only a watch.event can do that"),
        (
            "ext.before for any do lag 3 until 5s",
            "a system outside has no watches",
        ),
    ] {
        let error = parse(&format!("plan a\nworkload w seed 1\non {rule}\n")).unwrap_err();
        assert!(error.problem.contains(problem), "{rule}: {error}");
    }
}
