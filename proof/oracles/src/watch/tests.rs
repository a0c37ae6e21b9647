use serde_json::{Value, json};

use super::*;
use crate::{Commit, ObjectState};

const MAPS: &str = "/configmaps";

fn object(name: &str, color: &str, revision: u64) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "d",
            "resourceVersion": revision.to_string(),
            "labels": {"color": color},
        },
    })
}

/// Writes each (name, color) in turn from revision 1 on; no color removes the object.
fn commit_log(writes: &[(&str, &str)]) -> CommitLog {
    let mut commit_log = CommitLog::after(0);
    let mut objects: std::collections::HashMap<&str, ObjectState> =
        std::collections::HashMap::new();
    for (revision, (name, color)) in (1..).zip(writes) {
        let previous = objects.remove(name);
        let gone = color.is_empty();
        let shown = if gone {
            let mut last = previous.as_ref().unwrap().value();
            last["metadata"]["resourceVersion"] = json!(revision.to_string());
            last
        } else {
            object(name, color, revision)
        };
        let state = ObjectState::new(revision, shown.to_string().into());
        if !gone {
            objects.insert(name, state.clone());
        }
        commit_log.push(Commit {
            revision,
            resource: MAPS.into(),
            path: format!("d/{name}"),
            state,
            gone,
            previous,
        });
    }
    commit_log
}

/// The commits of most tests: a, b, a changes, c, b is removed, a changes color.
fn usual() -> CommitLog {
    commit_log(&[
        ("a", "red"),
        ("b", "red"),
        ("a", "red"),
        ("c", "blue"),
        ("b", ""),
        ("a", "blue"),
    ])
}

fn event(change: &str, name: &str, color: &str, revision: u64) -> Value {
    json!({"type": change, "object": object(name, color, revision)})
}

fn mark(revision: u64) -> Value {
    let metadata = json!({"resourceVersion": revision.to_string()});
    json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": metadata}})
}

fn state_mark(revision: u64) -> Value {
    let mut mark = mark(revision);
    mark["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    mark
}

fn expired() -> Value {
    json!({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
}

fn stream(start: Start, selector: &str, lines: &[Value]) -> WatchOracle {
    let mut oracle = WatchOracle::new("s", MAPS, Filter::default().labels(selector), start);
    for line in lines {
        oracle.line(line.to_string().as_bytes());
    }
    oracle
}

fn found(oracle: &WatchOracle, commit_log: &CommitLog) -> Vec<Guarantee> {
    let found = oracle.check(commit_log).into_iter();
    found.map(|violation| violation.guarantee).collect()
}

/// The complete correct stream from revision 1 on.
fn right() -> Vec<Value> {
    vec![
        event("ADDED", "b", "red", 2),
        event("MODIFIED", "a", "red", 3),
        event("ADDED", "c", "blue", 4),
        event("DELETED", "b", "red", 5),
        event("MODIFIED", "a", "blue", 6),
    ]
}

#[test]
fn right_streams_hold() {
    let commit_log = usual();
    let a = |revision| event("ADDED", "a", "red", revision);
    let b = || event("ADDED", "b", "red", 2);
    for (start, selector, lines) in [
        (Start::After(1), "", right()),
        (Start::After(1), "", right()[..2].to_vec()),
        (Start::After(6), "", vec![mark(6)]),
        (
            Start::After(3),
            "color=red",
            vec![
                event("DELETED", "b", "red", 5),
                event("DELETED", "a", "red", 6),
            ],
        ),
        (
            Start::After(3),
            "color=blue",
            vec![
                event("ADDED", "c", "blue", 4),
                mark(5),
                event("ADDED", "a", "blue", 6),
                mark(6),
            ],
        ),
        (
            Start::MarkedState,
            "",
            [&[a(3), b(), state_mark(3)], &right()[2..]].concat(),
        ),
        (Start::MarkedState, "", vec![a(3)]),
        (Start::State, "", [&[a(3), b()], &right()[2..]].concat()),
        (
            Start::State,
            "",
            vec![a(1), b(), event("MODIFIED", "a", "red", 3)],
        ),
        (
            Start::State,
            "color=blue",
            vec![event("ADDED", "c", "blue", 4), mark(5)],
        ),
        (Start::State, "color=green", vec![]),
        (Start::Now, "", right()[3..].to_vec()),
    ] {
        let found = stream(start, selector, &lines).check(&commit_log);
        assert_eq!(found, [], "{start:?} {selector} {lines:?}");
    }
}

#[test]
fn wrong_streams_are_caught() {
    use Guarantee::{Atomic, Bookmarkable, Faithful, Ordered, Reliable, Resumable, Unique};
    type Break = fn(&mut Vec<Value>);
    let commit_log = usual();
    let breaks: [(&str, Break, Guarantee); 12] = [
        ("a lost event", |l| drop(l.remove(2)), Reliable),
        ("a gap after the resume", |l| drop(l.remove(0)), Resumable),
        ("a duplicate", |l| l.insert(2, l[1].clone()), Unique),
        ("a late duplicate", |l| l.push(l[1].clone()), Unique),
        ("two swapped", |l| l.swap(1, 2), Ordered),
        (
            "an event from before",
            |l| l.insert(0, event("ADDED", "a", "red", 1)),
            Resumable,
        ),
        (
            "a bookmark ahead of events",
            |l| l.insert(1, mark(4)),
            Bookmarkable,
        ),
        (
            "a bookmark behind events",
            |l| l.insert(3, mark(2)),
            Bookmarkable,
        ),
        (
            "a wrong change",
            |l| l[1]["type"] = json!("ADDED"),
            Faithful,
        ),
        (
            "another state's object",
            |l| l[4]["object"]["metadata"]["labels"] = json!({}),
            Atomic,
        ),
        (
            "an invention",
            |l| l.push(event("ADDED", "x", "red", 9)),
            Faithful,
        ),
        (
            "not an event",
            |l| l.push(json!({"type": "HELLO"})),
            Faithful,
        ),
    ];
    for (name, wreck, guarantee) in breaks {
        let mut lines = right();
        wreck(&mut lines);
        let found = found(&stream(Start::After(1), "", &lines), &commit_log);
        assert!(found.contains(&guarantee), "{name}: {found:?}");
    }
}

#[test]
fn a_selector_that_forgets_what_left_it_is_caught() {
    let lines = [event("DELETED", "b", "red", 5), mark(6)];
    let oracle = stream(Start::After(3), "color=red", &lines);
    assert_eq!(found(&oracle, &usual()), [Guarantee::Reliable]);
}

#[test]
fn a_wrong_initial_state_is_caught() {
    let commit_log = usual();
    let a = event("ADDED", "a", "red", 3);
    let b = event("ADDED", "b", "red", 2);
    let stale = event("ADDED", "a", "red", 1);
    let next = event("DELETED", "b", "red", 5);
    for (start, lines) in [
        (Start::MarkedState, vec![a.clone(), state_mark(3)]),
        (
            Start::MarkedState,
            vec![stale.clone(), b.clone(), state_mark(3)],
        ),
        (
            Start::MarkedState,
            vec![a.clone(), b.clone(), state_mark(1)],
        ),
        (Start::State, vec![a, next.clone()]),
        (Start::State, vec![stale, b, next]),
    ] {
        let found = found(&stream(start, "", &lines), &commit_log);
        assert!(found.contains(&Guarantee::Reliable), "{lines:?}: {found:?}");
    }
}

#[test]
fn a_place_expires_only_if_it_was_forgotten() {
    let mut commit_log = usual();
    commit_log.compacted(3);
    for (start, wrong) in [(2, false), (3, true), (5, true)] {
        let oracle = stream(Start::After(start), "", &[expired()]);
        assert_eq!(!found(&oracle, &commit_log).is_empty(), wrong, "{start}");
    }
}

#[test]
fn a_stream_that_had_time_and_said_nothing_is_caught() {
    let mut oracle = stream(Start::After(5), "", &[]);
    assert_eq!(found(&oracle, &usual()), []);
    oracle.had_time_for(6);
    assert_eq!(found(&oracle, &usual()), [Guarantee::Resumable]);
    let mut ended = stream(Start::After(5), "", &[]);
    ended.end();
    ended.had_time_for(6);
    assert_eq!(found(&ended, &usual()), []);
}

#[test]
fn a_violation_names_both_events_and_the_stream() {
    let mut lines = right();
    lines.swap(1, 2);
    let found = stream(Start::After(1), "", &lines).check(&usual());
    assert_eq!(
        found[0].to_string(),
        "not ordered: older than the one before; first ADDED d/c at 4; then MODIFIED d/a at 3; on s"
    );
}
