//! The trace of a run.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher},
    time::Duration,
};

use neap_kit::clock::Clock;
use serde::{Deserialize, Serialize};

use crate::fault_injector::Call;

/// A request, response, event or fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// The time since the start of the run.
    pub at: Duration,
    pub actor: String,
    /// The request, or the watch's request for an event.
    pub call: Call,
    pub kind: EntryKind,
}

/// The kind of a trace entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    Request,
    /// With its status code.
    Response(u16),
    /// An event of a watch, with its type.
    WatchEvent(String),
    /// With the name of its kind.
    Fault(String),
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call {
            verb,
            kind,
            namespace,
            name,
            ..
        } = &self.call;
        let at = self.at.as_secs_f64();
        write!(f, "{at:9.3}s {} ", self.actor)?;
        match &self.kind {
            EntryKind::Request => write!(f, "sends"),
            EntryKind::Response(code) => write!(f, "receives {code}"),
            EntryKind::WatchEvent(change) => write!(f, "observes {change}"),
            EntryKind::Fault(fault) => write!(f, "hits fault {fault}"),
        }?;
        write!(f, ": {} {kind} {namespace}/{name}", verb.word())
    }
}

/// The entries of a run, and their hash.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    entries: Vec<TraceEntry>,
    hasher: DefaultHasher,
}

impl Trace {
    pub(crate) fn hash(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.hasher.write_u8(0xff);
    }

    pub(crate) fn add(&mut self, clock: Clock, actor: &str, call: &Call, kind: EntryKind) {
        let entry = TraceEntry {
            at: clock.uptime(),
            actor: actor.to_owned(),
            call: call.clone(),
            kind,
        };
        self.hasher.write_u128(entry.at.as_nanos());
        let (number, word) = match &entry.kind {
            EntryKind::Request => (0, ""),
            EntryKind::Response(code) => (*code, ""),
            EntryKind::WatchEvent(change) => (1, change.as_str()),
            EntryKind::Fault(fault) => (2, fault.as_str()),
        };
        self.hasher.write_u16(number);
        for text in [
            actor,
            word,
            call.verb.word(),
            &call.kind,
            &call.namespace,
            &call.name,
        ] {
            self.hash(text.as_bytes());
        }
        self.entries.push(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes the entries and their hash.
    pub(crate) fn take(&mut self) -> (Vec<TraceEntry>, u64) {
        (std::mem::take(&mut self.entries), self.hasher.finish())
    }
}
