//! The faults that the callers of a system meet.

use std::{fmt, sync::Arc};

use http::Method;
use neap_kit::client::Fault;
use parking_lot::Mutex;

/// The faults of a system, in the order in which they are tried. Cheap to clone; clones are the same
/// book.
#[derive(Debug, Clone, Default)]
pub struct FaultBook(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug, Clone)]
struct Entry {
    on: CallMatcher,
    fault: Fault,
    matched: u32,
    struck: u32,
}

/// Which calls a fault strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallMatcher {
    method: Option<Method>,
    path: String,
    skip: u32,
    times: Option<u32>,
}

impl CallMatcher {
    /// All calls.
    pub fn any() -> Self {
        Self::path("*")
    }

    /// Calls with this path, in which a star stands for any text.
    pub fn path(pattern: impl Into<String>) -> Self {
        Self {
            method: None,
            path: pattern.into(),
            skip: 0,
            times: None,
        }
    }

    /// Of these, those with this method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Of these, not the first ones.
    pub fn skip(mut self, calls: u32) -> Self {
        self.skip = calls;
        self
    }

    /// Of these, at most this many.
    pub fn times(mut self, calls: u32) -> Self {
        self.times = Some(calls);
        self
    }

    fn fits(&self, method: &Method, path: &str) -> bool {
        self.method.as_ref().is_none_or(|wanted| wanted == method) && fits(&self.path, path)
    }
}

impl FaultBook {
    /// Adds a fault.
    pub fn inject(&self, on: CallMatcher, fault: Fault) {
        self.0.lock().push(Entry {
            on,
            fault,
            matched: 0,
            struck: 0,
        });
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// The faults that have not struck: with one of them, a test has tested nothing.
    pub fn unused(&self) -> Vec<String> {
        let entries = self.0.lock();
        let unused = entries.iter().filter(|entry| entry.struck == 0);
        unused.map(ToString::to_string).collect()
    }

    /// The fault of this call, if there is one.
    pub(crate) fn next(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut entries = self.0.lock();
        for entry in entries.iter_mut() {
            if !entry.on.fits(method, path) {
                continue;
            }
            entry.matched += 1;
            let left = entry.on.times.is_none_or(|times| entry.struck < times);
            if entry.matched > entry.on.skip && left {
                entry.struck += 1;
                return Some(entry.fault);
            }
        }
        None
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.on.method {
            write!(f, "{method} ")?;
        }
        write!(f, "{}: {}", self.on.path, self.fault)
    }
}

/// Whether `text` fits a pattern in which a star stands for any text.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let Some((beginning, mut rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(beginning) else {
        return false;
    };
    while let Some((part, after)) = rest.split_once('*') {
        // The first place is the best one: it leaves the most text for what follows.
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
        rest = after;
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("/v2/*/manifests/*", "/v2/a/b/manifests/latest", true),
            ("/v2/*/manifests/*", "/v2/a/b/blobs/latest", false),
            ("*/uploads/*", "/v2/a/blobs/uploads/", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("/v2/", "/v2/", true),
            ("/v2/", "/v2/x", false),
            ("*.json", "a.json.json", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_fault_strikes_as_often_as_its_matcher_says() {
        let book = FaultBook::default();
        let slow = Fault::Slow(Duration::from_secs(1));
        let gets = CallMatcher::path("/a*").method(Method::GET);
        book.inject(gets.skip(1).times(2), slow);
        book.inject(CallMatcher::path("/never"), Fault::Silent);
        let next = |method, path| book.next(&method, path).is_some();
        assert!(!next(Method::GET, "/a"), "the first is skipped");
        assert!(!next(Method::PUT, "/a"));
        assert!(next(Method::GET, "/a"));
        assert!(!next(Method::GET, "/b"));
        assert!(next(Method::GET, "/ab"));
        assert!(!next(Method::GET, "/ab"), "two were used up");
        assert_eq!(book.unused(), ["/never: no answer"]);
        book.clear();
        assert!(book.unused().is_empty());
    }
}
