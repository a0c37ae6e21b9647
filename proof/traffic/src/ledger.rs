//! The outcome of every request.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

/// Losses that are described; the others are only counted.
const MAX_DESCRIBED_LOSSES: usize = 12;

/// The requests and their outcomes. Every request has a unique number.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    rows: Vec<RequestRecord>,
    tally: RequestTally,
}

#[derive(Debug, Default, Clone, Copy)]
struct RequestRecord {
    /// The number of times that a pod received all of it.
    seen: u8,
    outcome: RequestOutcome,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    #[default]
    Open,
    /// Done, with only the data plane between the client and a pod.
    Direct,
    Answered,
    Refused,
    Lost,
}

/// Records that a pod has received all of a request.
pub(crate) trait RequestSink: std::fmt::Debug + Send + Sync {
    fn record_received(&self, id: u64);
}

/// The totals.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestTally {
    pub sent: u64,
    /// Requests with a complete and correct answer.
    pub answered: u64,
    /// Of those, the requests that went to a pod and back; in a simulated run, through a resolver.
    pub through: u64,
    /// Requests that were refused with a reason, which is required of a terminating resolver.
    pub refused: u64,
    /// Requests without an answer, or with a wrong one.
    pub lost: u64,
    /// Requests that pods received more than once.
    pub duplicated: u64,
    /// Requests that were answered through a resolver without reaching a pod.
    pub invented: u64,
    /// The longest response time, in milliseconds.
    pub longest_wait: u64,
    /// The first lost requests, with the reason.
    pub losses: Vec<String>,
}

impl Ledger {
    /// The number of a new request.
    pub(crate) fn sent(&self) -> u64 {
        let mut state = self.0.lock();
        state.rows.push(RequestRecord::default());
        state.tally.sent += 1;
        state.rows.len() as u64 - 1
    }

    /// The client has a complete and correct answer.
    pub(crate) fn answered(&self, id: u64, waited: Duration) {
        let mut state = self.0.lock();
        state.end(id, RequestOutcome::Answered);
        let tally = &mut state.tally;
        tally.answered += 1;
        tally.through += 1;
        tally.longest_wait = tally.longest_wait.max(waited.as_millis() as u64);
    }

    /// It went directly to a pod that accepts connections.
    pub(crate) fn direct(&self, id: u64) {
        let mut state = self.0.lock();
        state.end(id, RequestOutcome::Direct);
        state.tally.answered += 1;
    }

    /// The client was told that the request is refused and that nothing of it was sent.
    pub(crate) fn refused(&self, id: u64) {
        let mut state = self.0.lock();
        state.end(id, RequestOutcome::Refused);
        state.tally.refused += 1;
    }

    /// The client has no answer, or a wrong one.
    pub(crate) fn lost(&self, id: u64, why: &str) {
        let mut state = self.0.lock();
        let seen = state.end(id, RequestOutcome::Lost);
        state.tally.lost += 1;
        if state.tally.losses.len() < MAX_DESCRIBED_LOSSES {
            let loss = format!("request {id}, seen {seen} times by pods: {why}");
            state.tally.losses.push(loss);
        }
    }

    /// The number of requests in flight.
    pub(crate) fn open(&self) -> u64 {
        let RequestTally {
            sent,
            answered,
            refused,
            lost,
            ..
        } = self.0.lock().tally;
        sent - answered - refused - lost
    }

    /// The totals so far. A request that is still in flight counts as lost.
    pub(crate) fn close(&self) -> RequestTally {
        let open: Vec<u64> = {
            let state = self.0.lock();
            let rows = state.rows.iter().enumerate();
            let open = rows.filter(|(_, row)| row.outcome == RequestOutcome::Open);
            open.map(|(id, _)| id as u64).collect()
        };
        for id in open {
            self.lost(id, "nothing came of it until the end");
        }
        let state = self.0.lock();
        let count =
            |is: fn(&RequestRecord) -> bool| state.rows.iter().filter(|row| is(row)).count() as u64;
        RequestTally {
            duplicated: count(|row| row.seen > 1),
            invented: count(|row| row.outcome == RequestOutcome::Answered && row.seen == 0),
            // A client that is told that nothing was sent may send it again.
            lost: state.tally.lost
                + count(|row| row.outcome == RequestOutcome::Refused && row.seen > 0),
            ..state.tally.clone()
        }
    }
}

impl RequestSink for Ledger {
    fn record_received(&self, id: u64) {
        let mut state = self.0.lock();
        if let Some(row) = state.rows.get_mut(id as usize) {
            row.seen = row.seen.saturating_add(1);
        }
    }
}

impl LedgerState {
    /// Sets the outcome; returns how many times pods received the request.
    fn end(&mut self, id: u64, outcome: RequestOutcome) -> u8 {
        let row = self.rows.get_mut(id as usize);
        row.map_or(0, |row| {
            row.outcome = outcome;
            row.seen
        })
    }
}

impl RequestTally {
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
        ledger.record_received(ids[0]);
        ledger.answered(ids[0], Duration::from_millis(3));
        ledger.record_received(ids[1]);
        ledger.record_received(ids[1]);
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
