//! O5: external calls take effect once, and none with an outdated fence.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Oracle, Violation};
use crate::external::{LedgerRow, Reply};

/// The number of times each external call took effect.
pub(super) type Effects = BTreeMap<String, usize>;

pub(super) fn effects(ledger: &[LedgerRow]) -> Effects {
    let mut effects = Effects::new();
    for row in done(ledger) {
        let what = format!("{} {}", row.call.call, row.call.target);
        *effects.entry(what).or_default() += 1;
    }
    effects
}

fn done(ledger: &[LedgerRow]) -> impl Iterator<Item = &LedgerRow> {
    ledger.iter().filter(|row| row.reply == Reply::Done)
}

/// Violations in a ledger by itself, and compared with that of a run without faults.
pub(super) fn judge(wanted: &Effects, ledger: &[LedgerRow]) -> Vec<Violation> {
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

fn repeated(ledger: &[LedgerRow]) -> Vec<Violation> {
    let mut keys = HashSet::new();
    let again = done(ledger).filter(|row| !keys.insert(&row.call.key));
    let tell = |row: &LedgerRow| {
        let text = format!("outside, {} was done again", row.call.key);
        violation(row.call.call, text)
    };
    again.map(tell).collect()
}

fn too_late(ledger: &[LedgerRow]) -> Vec<Violation> {
    let mut highest: HashMap<&str, u64> = HashMap::new();
    let mut violations = Vec::new();
    for row in ledger {
        let newest = highest.entry(&row.call.operation).or_default();
        if row.reply == Reply::Done && row.call.fence < *newest {
            let (key, fence) = (&row.call.key, row.call.fence);
            let text = format!("outside, {key} was done with fence {fence} after {newest}");
            violations.push(violation(row.call.call, text));
        }
        *newest = row.call.fence.max(*newest);
    }
    violations
}

/// The kind is the call, so that a failure keeps its kind while it is being reduced.
fn violation(what: &str, text: String) -> Violation {
    let call = what.split(' ').next().unwrap_or_default();
    Violation::new(Oracle::Outside, call, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external::ExternalCall;

    fn row(key: &str, fence: u64, reply: Reply) -> LedgerRow {
        let call = ExternalCall {
            call: "make",
            target: "network".to_owned(),
            operation: "one".to_owned(),
            key: key.to_owned(),
            fence,
        };
        LedgerRow { call, reply }
    }

    fn told(ledger: &[LedgerRow]) -> Vec<String> {
        let once = effects(&[row("a", 1, Reply::Done)]);
        let violations = judge(&once, ledger);
        violations.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn a_call_takes_effect_once_and_only_with_the_newest_fence() {
        let once = [
            row("a", 1, Reply::Done),
            row("a", 2, Reply::AlreadyDone),
            row("a", 1, Reply::StaleFence),
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
            told(&[row("a", 2, Reply::AlreadyDone), row("a", 1, Reply::Done)]),
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
