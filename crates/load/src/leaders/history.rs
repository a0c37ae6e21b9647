//! What was seen of an election: the Lease and the ledger as the server had them, and what each
//! contestant says that it began.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::objects::revision;

/// Everything that was seen, each part in the order in which it happened.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The states of the Lease.
    pub leases: Vec<Held>,
    /// The states of the object that leaders write.
    pub ledger: Vec<Entry>,
    /// What the contestants began, whatever came of it.
    pub attempts: Vec<Attempt>,
}

/// One state of the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its place among all that happened in the server.
    pub revision: u64,
    /// Who leads; nobody after it was let go of.
    pub holder: Option<String>,
    /// The term.
    pub term: i64,
    /// When its holder began to write it.
    pub renewed: Timestamp,
    /// How long it lasts.
    pub duration: Duration,
}

/// A write as its writer stamped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Who wrote.
    pub who: String,
    /// In which term.
    pub term: i64,
    /// When it was begun.
    pub begun: Timestamp,
}

/// A write that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place among all that happened in the server.
    pub revision: u64,
    /// What is written in it.
    pub stamp: Stamp,
}

/// A write that somebody began, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// By whom and when.
    pub stamp: Stamp,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server accepted it.
    Written,
    /// The server had a newer state.
    Replaced,
    /// The contestant did not lead, so nothing was sent.
    Fenced,
    /// No answer, or another refusal: it may have happened.
    Unknown,
}

impl Outcome {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Written, "written"),
        (Self::Replaced, "replaced"),
        (Self::Fenced, "fenced"),
        (Self::Unknown, "unknown"),
    ];
}

impl Held {
    /// From a Lease.
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

impl Stamp {
    /// As the data of a ConfigMap.
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

impl Entry {
    /// From a ConfigMap.
    pub fn read(ledger: &Value) -> Result<Self> {
        Ok(Self {
            revision: revision(ledger)?,
            stamp: Stamp::read(&ledger["data"])?,
        })
    }
}

impl Attempt {
    /// One line that [`Self::read`] understands.
    pub fn line(&self) -> String {
        let word = Outcome::ALL.iter().find(|(one, _)| *one == self.outcome);
        let mut line = json!({"outcome": word.map(|(_, word)| word)});
        for (key, value) in self.stamp.data() {
            line[key] = value.into();
        }
        line.to_string()
    }

    /// What a contestant told of.
    pub fn read(line: &str) -> Result<Self> {
        let line: Value = serde_json::from_str(line)?;
        let mut outcomes = Outcome::ALL.iter();
        let outcome = outcomes.find(|(_, word)| line["outcome"] == *word);
        Ok(Self {
            stamp: Stamp::read(&line)?,
            outcome: outcome.context("no outcome")?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_contestant_tells_is_understood() {
        for (outcome, _) in Outcome::ALL {
            let stamp = Stamp {
                who: "a".into(),
                term: 3,
                begun: "2026-01-01T00:00:00.000123Z".parse().unwrap(),
            };
            let attempt = Attempt { stamp, outcome };
            assert_eq!(Attempt::read(&attempt.line()).unwrap(), attempt);
        }
        assert!(Attempt::read("{}").is_err());
    }

    #[test]
    fn objects_are_understood() {
        let metadata = json!({"resourceVersion": "7"});
        let mut lease = json!({"metadata": metadata, "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }});
        let held = Held::read(&lease).unwrap();
        assert_eq!((held.holder.as_deref(), held.term), (Some("a"), 2));
        lease["spec"]["holderIdentity"] = "".into();
        assert_eq!(Held::read(&lease).unwrap().holder, None);
        let ledger = json!({"metadata": metadata, "data": {"who": "a", "term": "2"}});
        assert!(Entry::read(&ledger).is_err(), "nobody knows when");
    }
}
