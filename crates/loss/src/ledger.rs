//! What became of every request.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

/// So many losses are told of; the others are counted.
const TOLD: usize = 12;

/// Who was asked what, and who was answered. Every request has a number of its own.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    rows: Vec<Row>,
    tally: Tally,
}

#[derive(Debug, Default, Clone, Copy)]
struct Row {
    /// So many times a pod had it as a whole.
    seen: u8,
    fate: Fate,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fate {
    #[default]
    Open,
    /// Over, without anybody but the data plane between the client and a pod.
    Direct,
    Answered,
    Refused,
    Lost,
}

/// Whoever wants to know that a pod has all of a request.
pub(crate) trait Saw: std::fmt::Debug + Send + Sync {
    /// It has.
    fn saw(&self, id: u64);
}

/// What came of all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// So many were sent.
    pub sent: u64,
    /// So many were answered completely, as they should be.
    pub answered: u64,
    /// So many of those were carried to a pod and back: in a play, through a resolver.
    pub through: u64,
    /// So many were refused with a word of why, which is asked of a resolver that ends.
    pub refused: u64,
    /// So many were not answered, or wrongly.
    pub lost: u64,
    /// So many a pod had more than once.
    pub duplicated: u64,
    /// So many were answered through a resolver, and no pod had them.
    pub invented: u64,
    /// The longest that anybody waited, in milliseconds.
    pub longest_wait: u64,
    /// The first of those that were lost, and why.
    pub losses: Vec<String>,
}

impl Ledger {
    /// The number of a new request.
    pub(crate) fn sent(&self) -> u64 {
        let mut book = self.0.lock();
        book.rows.push(Row::default());
        book.tally.sent += 1;
        book.rows.len() as u64 - 1
    }

    /// A client has all of an answer, and it is right.
    pub(crate) fn answered(&self, id: u64, waited: Duration) {
        let mut book = self.0.lock();
        book.end(id, Fate::Answered);
        let tally = &mut book.tally;
        tally.answered += 1;
        tally.through += 1;
        tally.longest_wait = tally.longest_wait.max(waited.as_millis() as u64);
    }

    /// It went straight to a pod that takes connections.
    pub(crate) fn direct(&self, id: u64) {
        let mut book = self.0.lock();
        book.end(id, Fate::Direct);
        book.tally.answered += 1;
    }

    /// A client was told that nobody takes it, and that nothing of it was sent.
    pub(crate) fn refused(&self, id: u64) {
        let mut book = self.0.lock();
        book.end(id, Fate::Refused);
        book.tally.refused += 1;
    }

    /// A client has no answer, or a wrong one.
    pub(crate) fn lost(&self, id: u64, why: &str) {
        let mut book = self.0.lock();
        let seen = book.end(id, Fate::Lost);
        book.tally.lost += 1;
        if book.tally.losses.len() < TOLD {
            let told = format!("request {id}, seen {seen} times by pods: {why}");
            book.tally.losses.push(told);
        }
    }

    /// How many are still under way.
    pub(crate) fn open(&self) -> u64 {
        let Tally {
            sent,
            answered,
            refused,
            lost,
            ..
        } = self.0.lock().tally;
        sent - answered - refused - lost
    }

    /// What came of them so far. Whoever is still under way is lost.
    pub(crate) fn close(&self) -> Tally {
        let open: Vec<u64> = {
            let book = self.0.lock();
            let rows = book.rows.iter().enumerate();
            let open = rows.filter(|(_, row)| row.fate == Fate::Open);
            open.map(|(id, _)| id as u64).collect()
        };
        for id in open {
            self.lost(id, "nothing came of it until the end");
        }
        let book = self.0.lock();
        let count = |is: fn(&Row) -> bool| book.rows.iter().filter(|row| is(row)).count() as u64;
        Tally {
            duplicated: count(|row| row.seen > 1),
            invented: count(|row| row.fate == Fate::Answered && row.seen == 0),
            // Whoever is told that nothing was sent may send it again.
            lost: book.tally.lost + count(|row| row.fate == Fate::Refused && row.seen > 0),
            ..book.tally.clone()
        }
    }
}

impl Saw for Ledger {
    fn saw(&self, id: u64) {
        let mut book = self.0.lock();
        if let Some(row) = book.rows.get_mut(id as usize) {
            row.seen = row.seen.saturating_add(1);
        }
    }
}

impl Book {
    /// How many times pods had it.
    fn end(&mut self, id: u64, fate: Fate) -> u8 {
        let row = self.rows.get_mut(id as usize);
        row.map_or(0, |row| {
            row.fate = fate;
            row.seen
        })
    }
}

impl Tally {
    /// Whether every request was answered, once.
    pub fn holds(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.invented == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_duplicated_or_invented_is_counted() {
        let ledger = Ledger::default();
        let ids: Vec<u64> = (0..5).map(|_| ledger.sent()).collect();
        ledger.saw(ids[0]);
        ledger.answered(ids[0], Duration::from_millis(3));
        ledger.saw(ids[1]);
        ledger.saw(ids[1]);
        ledger.answered(ids[1], Duration::from_millis(2));
        ledger.answered(ids[2], Duration::ZERO);
        ledger.lost(ids[3], "refused");
        assert_eq!(ledger.open(), 1);
        let tally = ledger.close();
        assert_eq!((tally.sent, tally.answered, tally.lost), (5, 3, 2));
        assert_eq!((tally.duplicated, tally.invented), (1, 1));
        assert_eq!(tally.longest_wait, 3);
        assert!(!tally.holds());
    }
}
