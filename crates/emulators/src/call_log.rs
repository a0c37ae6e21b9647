//! The calls that a system has received.

use std::{collections::VecDeque, sync::Arc};

use http::{Method, Request, StatusCode, header::AUTHORIZATION};
use jiff::Timestamp;
use parking_lot::Mutex;

/// The calls that are kept; older ones are forgotten and still counted.
const MAX_CALLS: usize = 10_000;

/// The calls of a system, in the order of their arrival. Cheap to clone; clones show the same calls.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    /// The number of the next call, which is the number of calls so far.
    next: u64,
    kept: VecDeque<CallRecord>,
}

/// A call that a system has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its number; the first is 0.
    pub number: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// The method.
    pub method: Method,
    /// The path with the query.
    pub path: String,
    /// Whether the caller sent credentials.
    pub with_credentials: bool,
    /// The status of the answer; none while there is none.
    pub status: Option<StatusCode>,
}

impl CallRecord {
    /// The call in one line, such as `GET /v2/ 200`.
    pub fn line(&self) -> String {
        let Self { method, path, .. } = self;
        match self.status {
            Some(status) => format!("{method} {path} {}", status.as_u16()),
            None => format!("{method} {path}"),
        }
    }
}

impl CallLog {
    pub(crate) fn arrived<B>(&self, at: Timestamp, request: &Request<B>) -> u64 {
        let path = request.uri().path_and_query();
        let mut calls = self.0.lock();
        let number = calls.next;
        calls.next += 1;
        if calls.kept.len() == MAX_CALLS {
            calls.kept.pop_front();
        }
        calls.kept.push_back(CallRecord {
            number,
            at,
            method: request.method().clone(),
            path: path.map_or_else(|| "/".to_owned(), ToString::to_string),
            with_credentials: request.headers().contains_key(AUTHORIZATION),
            status: None,
        });
        number
    }

    pub(crate) fn answered(&self, number: u64, status: StatusCode) {
        let mut calls = self.0.lock();
        let first = calls.kept.front().map_or(0, |call| call.number);
        let at = number.checked_sub(first).map(|at| at as usize);
        if let Some(call) = at.and_then(|at| calls.kept.get_mut(at)) {
            call.status = Some(status);
        }
    }

    /// The number of calls so far.
    pub fn count(&self) -> u64 {
        self.0.lock().next
    }

    /// The latest calls, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.0.lock().kept.iter().cloned().collect()
    }

    /// The same as lines.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().kept.iter().map(CallRecord::line).collect()
    }

    /// Forgets the calls so far; they are still counted.
    pub fn clear(&self) {
        self.0.lock().kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_calls_are_forgotten_and_late_answers_find_theirs() {
        let log = CallLog::default();
        let request = Request::get("http://x/a?b").body(()).unwrap();
        let at = Timestamp::UNIX_EPOCH;
        for _ in 0..MAX_CALLS + 2 {
            log.arrived(at, &request);
        }
        log.answered(1, StatusCode::OK);
        log.answered(2, StatusCode::NOT_FOUND);
        assert_eq!(log.count(), MAX_CALLS as u64 + 2);
        assert_eq!(log.calls().len(), MAX_CALLS);
        assert_eq!(log.lines()[..2], ["GET /a?b 404", "GET /a?b"]);
        log.clear();
        log.answered(5, StatusCode::OK);
        assert!(log.calls().is_empty());
    }
}
