//! O5: what is done outside is done once, and not by those who come too late.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Oracle, Violation};
use crate::outside::{Reply, Row};

/// How often each thing was done outside.
pub(super) type Effects = BTreeMap<String, usize>;

pub(super) fn effects(ledger: &[Row]) -> Effects {
    let mut effects = Effects::new();
    for row in done(ledger) {
        let what = format!("{} {}", row.errand.call, row.errand.thing);
        *effects.entry(what).or_default() += 1;
    }
    effects
}

fn done(ledger: &[Row]) -> impl Iterator<Item = &Row> {
    ledger.iter().filter(|row| row.reply == Reply::Done)
}

/// What a ledger says by itself, and what it says beside one of a run without faults.
pub(super) fn judge(wanted: &Effects, ledger: &[Row]) -> Vec<Violation> {
    let mut violations = repeated(ledger);
    violations.extend(too_late(ledger));
    let found = effects(ledger);
    let mut all: Vec<_> = wanted.keys().chain(found.keys()).collect();
    all.sort_unstable();
    all.dedup();
    for what in all {
        let of = |effects: &Effects| effects.get(what).copied().unwrap_or_default();
        let (wanted, found) = (of(wanted), of(&found));
        if wanted != found {
            let text = format!("outside, {what} was done {found} times instead of {wanted}");
            violations.push(violation(what, text));
        }
    }
    violations
}

fn repeated(ledger: &[Row]) -> Vec<Violation> {
    let mut keys = HashSet::new();
    let again = done(ledger).filter(|row| !keys.insert(&row.errand.key));
    let tell = |row: &Row| {
        let text = format!("outside, {} was done again", row.errand.key);
        violation(row.errand.call, text)
    };
    again.map(tell).collect()
}

fn too_late(ledger: &[Row]) -> Vec<Violation> {
    let mut highest: HashMap<&str, u64> = HashMap::new();
    let mut violations = Vec::new();
    for row in ledger {
        let newest = highest.entry(&row.errand.operation).or_default();
        if row.reply == Reply::Done && row.errand.fence < *newest {
            let (key, fence) = (&row.errand.key, row.errand.fence);
            let text = format!("outside, {key} was done with fence {fence} after {newest}");
            violations.push(violation(row.errand.call, text));
        }
        *newest = row.errand.fence.max(*newest);
    }
    violations
}

/// The kind is the call, so that a failure that is made smaller stays the same.
fn violation(what: &str, text: String) -> Violation {
    let call = what.split(' ').next().unwrap_or_default();
    Violation::new(Oracle::Outside, call, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::Errand;

    fn row(key: &str, fence: u64, reply: Reply) -> Row {
        let errand = Errand {
            call: "make",
            thing: "network".to_owned(),
            operation: "one".to_owned(),
            key: key.to_owned(),
            fence,
        };
        Row { errand, reply }
    }

    fn told(ledger: &[Row]) -> Vec<String> {
        let once = effects(&[row("a", 1, Reply::Done)]);
        let violations = judge(&once, ledger);
        violations.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn a_thing_is_done_once_and_by_whoever_came_last() {
        let once = [
            row("a", 1, Reply::Done),
            row("a", 2, Reply::Already),
            row("a", 1, Reply::TooLate),
        ];
        assert_eq!(told(&once), [""; 0]);
        assert_eq!(
            told(&[row("a", 1, Reply::Done), row("a", 1, Reply::Done)]),
            [
                "outside, a was done again",
                "outside, make network was done 2 times instead of 1"
            ]
        );
        assert_eq!(
            told(&[row("a", 2, Reply::Already), row("a", 1, Reply::Done)]),
            ["outside, a was done with fence 1 after 2"]
        );
        assert_eq!(
            told(&[row("a", 1, Reply::Done), row("a-again", 2, Reply::Done)]),
            ["outside, make network was done 2 times instead of 1"],
            "another key does not make it another thing"
        );
        assert_eq!(
            told(&[]),
            ["outside, make network was done 0 times instead of 1"]
        );
    }
}
