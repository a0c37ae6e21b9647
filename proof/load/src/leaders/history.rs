//! The history of an election: the Lease and the ledger as the server had them, and the writes that
//! each candidate reports.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::objects::revision;

/// Everything that was observed, each part in order.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The states of the Lease.
    pub leases: Vec<LeaseState>,
    /// The states of the object that leaders write.
    pub ledger: Vec<LedgerEntry>,
    /// The writes that candidates began, with any outcome.
    pub attempts: Vec<WriteAttempt>,
}

/// A state of the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// Its revision in the server.
    pub revision: u64,
    /// The leader; none after the Lease was released.
    pub holder: Option<String>,
    pub term: i64,
    /// When its holder began to write it.
    pub renewed: Timestamp,
    pub duration: Duration,
}

/// A write, as its writer labelled it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteStamp {
    pub who: String,
    pub term: i64,
    /// When it was begun.
    pub begun: Timestamp,
}

/// A write that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its revision in the server.
    pub revision: u64,
    pub stamp: WriteStamp,
}

/// A write that a candidate began, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteAttempt {
    pub stamp: WriteStamp,
    pub outcome: WriteOutcome,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The server accepted it.
    Written,
    /// The server had a newer state.
    Replaced,
    /// The candidate did not lead, so nothing was sent.
    Fenced,
    /// No answer, or another refusal: it may have happened.
    Unknown,
}

impl WriteOutcome {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Written, "written"),
        (Self::Replaced, "replaced"),
        (Self::Fenced, "fenced"),
        (Self::Unknown, "unknown"),
    ];
}

impl LeaseState {
    /// Parses a Lease.
    pub fn read(lease: &Value) -> Result<Self> {
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let seconds = spec["leaseDurationSeconds"].as_u64();
        let renewed = spec["renewTime"].as_str().context("no renewal")?;
        Ok(Self {
            revision: revision(lease)?,
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            term: spec["leaseTransitions"].as_i64().unwrap_or_default(),
            renewed: renewed.parse()?,
            duration: Duration::from_secs(seconds.context("no duration")?),
        })
    }
}

impl WriteStamp {
    /// The data of the ConfigMap.
    pub fn data(&self) -> [(String, String); 3] {
        [
            ("who".to_owned(), self.who.clone()),
            ("term".to_owned(), self.term.to_string()),
            ("begun".to_owned(), self.begun.to_string()),
        ]
    }

    fn read(data: &Value) -> Result<Self> {
        let word = |key: &str| data[key].as_str().with_context(|| format!("no {key}"));
        Ok(Self {
            who: word("who")?.to_owned(),
            term: word("term")?.parse()?,
            begun: word("begun")?.parse()?,
        })
    }
}

impl LedgerEntry {
    /// Parses a ConfigMap.
    pub fn read(ledger: &Value) -> Result<Self> {
        Ok(Self {
            revision: revision(ledger)?,
            stamp: WriteStamp::read(&ledger["data"])?,
        })
    }
}

impl WriteAttempt {
    /// A line that [`Self::read`] parses.
    pub fn line(&self) -> String {
        let word = WriteOutcome::ALL
            .iter()
            .find(|(one, _)| *one == self.outcome);
        let mut line = json!({"outcome": word.map(|(_, word)| word)});
        for (key, value) in self.stamp.data() {
            line[key] = value.into();
        }
        line.to_string()
    }

    /// Parses a line of a candidate.
    pub fn read(line: &str) -> Result<Self> {
        let line: Value = serde_json::from_str(line)?;
        let mut outcomes = WriteOutcome::ALL.iter();
        let outcome = outcomes.find(|(_, word)| line["outcome"] == *word);
        Ok(Self {
            stamp: WriteStamp::read(&line)?,
            outcome: outcome.context("no outcome")?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_contestant_tells_is_understood() {
        for (outcome, _) in WriteOutcome::ALL {
            let stamp = WriteStamp {
                who: "a".into(),
                term: 3,
                begun: "2026-01-01T00:00:00.000123Z".parse().unwrap(),
            };
            let attempt = WriteAttempt { stamp, outcome };
            assert_eq!(WriteAttempt::read(&attempt.line()).unwrap(), attempt);
        }
        assert!(WriteAttempt::read("{}").is_err());
    }

    #[test]
    fn objects_are_understood() {
        let metadata = json!({"resourceVersion": "7"});
        let mut lease = json!({"metadata": metadata, "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }});
        let held = LeaseState::read(&lease).unwrap();
        assert_eq!((held.holder.as_deref(), held.term), (Some("a"), 2));
        lease["spec"]["holderIdentity"] = "".into();
        assert_eq!(LeaseState::read(&lease).unwrap().holder, None);
        let ledger = json!({"metadata": metadata, "data": {"who": "a", "term": "2"}});
        assert!(LedgerEntry::read(&ledger).is_err(), "the time is missing");
    }
}
