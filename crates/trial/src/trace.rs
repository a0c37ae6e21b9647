//! What happened in a run, in its order.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher},
    time::Duration,
};

use neap_kit::clock::Clock;
use serde::{Deserialize, Serialize};

use crate::seam::Call;

/// One thing that passed the seam.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// How long after the beginning.
    pub at: Duration,
    /// Whose it was.
    pub actor: String,
    /// What it was about.
    pub call: Call,
    /// What it was.
    pub what: What,
}

/// What passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A request.
    Asked,
    /// Its answer, with this code.
    Answered(u16),
    /// An event of a watch, of this type.
    Told(String),
    /// A fault struck.
    Struck(String),
}

impl fmt::Display for Entry {
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
        match &self.what {
            What::Asked => write!(f, "asks"),
            What::Answered(code) => write!(f, "is answered {code}"),
            What::Told(change) => write!(f, "is told {change}"),
            What::Struck(fault) => write!(f, "meets {fault}"),
        }?;
        write!(f, ": {} {kind} {namespace}/{name}", verb.word())
    }
}

/// The entries of a run, and a number that any difference in them changes.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    entries: Vec<Entry>,
    hasher: DefaultHasher,
}

impl Trace {
    pub(crate) fn hash(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.hasher.write_u8(0xff);
    }

    pub(crate) fn add(&mut self, clock: Clock, actor: &str, call: &Call, what: What) {
        let entry = Entry {
            at: clock.uptime(),
            actor: actor.to_owned(),
            call: call.clone(),
            what,
        };
        self.hasher.write_u128(entry.at.as_nanos());
        let (number, word) = match &entry.what {
            What::Asked => (0, ""),
            What::Answered(code) => (*code, ""),
            What::Told(change) => (1, change.as_str()),
            What::Struck(fault) => (2, fault.as_str()),
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

    /// The entries, and the number.
    pub(crate) fn take(&mut self) -> (Vec<Entry>, u64) {
        (std::mem::take(&mut self.entries), self.hasher.finish())
    }
}
