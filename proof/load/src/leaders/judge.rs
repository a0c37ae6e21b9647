//! Judges an election from its history alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use jiff::Timestamp;

use super::history::{History, LedgerEntry, WriteAttempt, WriteOutcome, WriteStamp};

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// A write was begun, and sent, at a time that no renewal of its term covers.
    Late(WriteStamp),
    /// A write was accepted after a leader of a later term had written.
    Overtaken(LedgerEntry),
    /// A write was begun after a leader of a later term had begun one.
    Entangled(WriteStamp),
    /// A candidate wrote in a term in which it did not hold the Lease.
    Usurped(WriteStamp),
    /// A term had two leaders.
    Shared(i64, BTreeSet<String>),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(stamp) => write!(f, "begun when the lease had run out: {stamp}"),
            Self::Overtaken(LedgerEntry { revision, stamp }) => write!(
                f,
                "accepted after the successor had written: {stamp}, revision {revision}"
            ),
            Self::Entangled(stamp) => {
                write!(f, "begun after the successor had begun to write: {stamp}")
            }
            Self::Usurped(stamp) => write!(
                f,
                "begun by a candidate that did not hold the Lease: {stamp}"
            ),
            Self::Shared(term, names) => write!(f, "term {term} had several leaders: {names:?}"),
        }
    }
}

impl fmt::Display for WriteStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, term, begun } = self;
        write!(f, "by {who} in term {term} at {begun}")
    }
}

/// The breaches. `deadline` is the time after the start of a renewal in which its leader may begin
/// writes; it ends before the Lease expires.
pub fn judge(history: &History, deadline: Duration) -> Vec<Breach> {
    let terms = terms(history);
    let mut breaches = shared(history, &terms);
    for stamp in begun(history) {
        match terms.get(&stamp.term) {
            Some(term) if term.holders.contains(&stamp.who) => {
                if !term.covers(stamp.begun, deadline) {
                    breaches.push(Breach::Late(stamp.clone()));
                }
            }
            _ => breaches.push(Breach::Usurped(stamp.clone())),
        }
    }
    breaches.extend(overtaken(history));
    breaches.extend(entangled(history));
    breaches
}

/// A term, according to the Lease.
#[derive(Debug, Default)]
struct Term {
    holders: BTreeSet<String>,
    renewals: Vec<Timestamp>,
}

impl Term {
    fn covers(&self, begun: Timestamp, deadline: Duration) -> bool {
        self.renewals.iter().any(|&renewed| {
            let since = begun.duration_since(renewed);
            !since.is_negative() && since.unsigned_abs() < deadline
        })
    }
}

fn terms(history: &History) -> BTreeMap<i64, Term> {
    let mut terms: BTreeMap<i64, Term> = BTreeMap::new();
    for lease in &history.leases {
        // Releasing the Lease renews nothing.
        if let Some(holder) = &lease.holder {
            let term = terms.entry(lease.term).or_default();
            term.holders.insert(holder.clone());
            term.renewals.push(lease.renewed);
        }
    }
    terms
}

/// Every write that was sent, reported by its writer or found in the server.
fn begun(history: &History) -> impl Iterator<Item = &WriteStamp> {
    let sent = |attempt: &&WriteAttempt| attempt.outcome != WriteOutcome::Fenced;
    let reported = history.attempts.iter().filter(sent);
    let reported = reported.map(|attempt| &attempt.stamp);
    reported.chain(history.ledger.iter().map(|entry| &entry.stamp))
}

fn shared(history: &History, terms: &BTreeMap<i64, Term>) -> Vec<Breach> {
    let mut leaders: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for (&number, term) in terms {
        leaders.insert(number, term.holders.clone());
    }
    for stamp in begun(history) {
        let names = leaders.entry(stamp.term).or_default();
        names.insert(stamp.who.clone());
    }
    let several = leaders.into_iter().filter(|(_, names)| names.len() > 1);
    several
        .map(|(term, names)| Breach::Shared(term, names))
        .collect()
}

fn overtaken(history: &History) -> Vec<Breach> {
    let mut newest = i64::MIN;
    let mut found = Vec::new();
    for entry in &history.ledger {
        if entry.stamp.term < newest {
            found.push(Breach::Overtaken(entry.clone()));
        }
        newest = newest.max(entry.stamp.term);
    }
    found
}

fn entangled(history: &History) -> Vec<Breach> {
    let mut firsts: BTreeMap<i64, Timestamp> = BTreeMap::new();
    for stamp in begun(history) {
        let first = firsts.entry(stamp.term).or_insert(stamp.begun);
        *first = stamp.begun.min(*first);
    }
    let overtaken = |stamp: &&WriteStamp| {
        let mut later = firsts.range(stamp.term + 1..);
        later.any(|(_, &first)| first <= stamp.begun)
    };
    let stamps = begun(history).filter(overtaken).cloned();
    stamps.map(Breach::Entangled).collect()
}

#[cfg(test)]
mod tests;
