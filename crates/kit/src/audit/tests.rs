mod parts;
mod served;

use super::*;

fn action(number: u64) -> AuditedAction {
    AuditedAction {
        time: "2026-01-01T00:00:00Z".parse().unwrap(),
        actor: "sorter".into(),
        action: "apply".into(),
        object: format!("v1 ConfigMap shop/{number}"),
        outcome: "done".into(),
        reason: None,
    }
}

/// The lines of a chain of this length, and its head.
fn chain(length: u64) -> (Vec<String>, ChainHead) {
    let (mut lines, mut head) = (Vec::new(), ChainHead::default());
    for number in 1..=length {
        let (line, next) = head.append(&action(number));
        lines.push(line + "\n");
        head = next;
    }
    (lines, head)
}

#[test]
fn an_unchanged_chain_is_valid() {
    assert_eq!(verify("", None), Ok(ChainHead::default()));
    let (lines, head) = chain(5);
    let (_, earlier) = chain(3);
    for anchor in [None, Some(&head), Some(&earlier)] {
        assert_eq!(verify(&lines.concat(), anchor), Ok(head.clone()));
    }
    let record: serde_json::Value = serde_json::from_str(&lines[4]).unwrap();
    assert_eq!(
        (&record["index"], &record["actor"]),
        (&5.into(), &"sorter".into())
    );
}

#[test]
fn a_change_of_any_byte_is_detected() {
    let (lines, head) = chain(3);
    let whole = lines.concat();
    for at in 0..whole.len() {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        let edited = String::from_utf8(bytes).unwrap();
        assert!(verify(&edited, Some(&head)).is_err(), "byte {at}: {edited}");
    }
}

#[test]
fn faults_name_the_record() {
    let (lines, head) = chain(4);
    let but = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        verify(&lines.concat(), Some(&head)).unwrap_err()
    };
    let edited = but(&|lines| lines[1] = lines[1].replace("done", "none"));
    assert_eq!(edited, ChainFault::Edited { index: 2 });
    let moved = but(&|lines| lines.swap(1, 2));
    assert_eq!(
        moved,
        ChainFault::Misplaced {
            expected: 2,
            found: 3
        }
    );
    let gone = but(&|lines| drop(lines.remove(0)));
    assert_eq!(
        gone,
        ChainFault::Misplaced {
            expected: 1,
            found: 2
        }
    );
    let twice = but(&|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(
        twice,
        ChainFault::Misplaced {
            expected: 2,
            found: 1
        }
    );
    let cut = but(&|lines| lines.truncate(2));
    assert_eq!(
        cut,
        ChainFault::Truncated {
            last: 2,
            anchored: 4
        }
    );
    assert_eq!(
        cut.to_string(),
        "the file ends with record 2, and record 4 was anchored: the end was cut off"
    );
    let torn = but(&|lines| lines[3].truncate(20));
    assert_eq!(torn, ChainFault::Torn { index: 4 });
    let noise = but(&|lines| lines[2] = "noise\n".into());
    assert_eq!(noise, ChainFault::Unreadable { line: 3 });
}

#[test]
fn a_rewritten_file_is_detected_by_its_anchor() {
    let (_, head) = chain(2);
    let mut other = ChainHead::default();
    let mut text = String::new();
    for number in 7..10 {
        let (line, next) = other.append(&action(number));
        text = text + &line + "\n";
        other = next;
    }
    assert_eq!(verify(&text, None), Ok(other));
    assert_eq!(
        verify(&text, Some(&head)),
        Err(ChainFault::Rewritten { index: 2 })
    );
}
