//! The result of a run as text.

use std::fmt::Write;

use crate::{mask::MASKS, permitted::PermittedDifference, report::Report};

/// How many properties of the schemas the requests had.
#[derive(Debug, Clone, Copy)]
pub struct PropertyCoverage {
    /// Properties that objects can have.
    pub all: usize,
    /// Those in a request.
    pub sent: usize,
    /// Those in an accepted request.
    pub accepted: usize,
}

/// Everything but the differences.
pub fn counts(report: &Report, share: PropertyCoverage) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "kind × verb × code × reason: count");
    for ((kind, verb, code, reason), count) in &report.answers {
        let _ = writeln!(text, "  {kind} {verb} {code} {reason}: {count}");
    }
    let (all, refused) = report.totals();
    let _ = writeln!(
        text,
        "requests: {all}, refused by the reference: {refused} ({:.1} %)",
        percent(refused, all)
    );
    let _ = writeln!(
        text,
        "schema properties: {}, sent: {} ({:.1} %), accepted: {} ({:.1} %)",
        share.all,
        share.sent,
        percent(share.sent, share.all),
        share.accepted,
        percent(share.accepted, share.all)
    );
    let (watches, events) = report.watches;
    let _ = writeln!(
        text,
        "watch streams compared: {watches}, with {events} events"
    );
    let (compared, masked) = report.leaves;
    let _ = writeln!(
        text,
        "values compared: {compared}, masked: {masked} ({:.1} %)",
        percent(masked, compared + masked)
    );
    for mask in MASKS {
        let _ = writeln!(text, "  masked: {mask}");
    }
    text
}

/// The differences, the most frequent first, with the arguments to reproduce them.
pub fn differences(report: &Report, show: usize) -> String {
    let mut text = String::new();
    let ranked = report.ranked();
    for (signature, found) in ranked.iter().take(show) {
        let _ = writeln!(
            text,
            "{}× {} {} · {} · {}",
            found.count, signature.kind, signature.verb, signature.field, signature.rule
        );
        let (seed, step) = found.first;
        let _ = writeln!(
            text,
            "   again: --seed {seed} --seeds 1 --requests {}",
            step + 1
        );
        let _ = writeln!(text, "   asked: {} {}", found.call.method, found.call.path);
        let _ = writeln!(text, "   reference: {}", short(&found.example.reference));
        let _ = writeln!(text, "   pocket:    {}", short(&found.example.pocket));
    }
    let _ = writeln!(text, "differences by signature: {}", ranked.len());
    text
}

/// The entries of the list that were used, and those that were not and must be removed.
pub fn allowances(report: &Report, entries: &[PermittedDifference]) -> String {
    let mut text = String::new();
    for (place, entry) in entries.iter().enumerate() {
        let used = report.allowed.get(&place).copied().unwrap_or(0);
        let word = if used == 0 {
            "no longer differs, remove it"
        } else {
            "allowed"
        };
        let _ = writeln!(
            text,
            "{word}: {} · {} · {} ({used}×): {}",
            entry.kind, entry.field, entry.rule, entry.reason
        );
    }
    text
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

fn short(value: &serde_json::Value) -> String {
    value.to_string().chars().take(300).collect()
}
