//! Rebuilds the state from records, looking at them where they lie in the files. Pure.
//!
//! Only what is kept is copied: objects that live, and the changes of the tail. No file's buffer
//! stays in memory because of one small object in it.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::{Change, Record, frame::RawRecord};

/// A version of an object: its revision and value.
type Version<'a> = (u64, &'a [u8]);

#[derive(Debug)]
pub(super) struct Replay<'a> {
    live: HashMap<&'a [u8], Version<'a>>,
    tail: VecDeque<(RawRecord<'a>, Option<Version<'a>>)>,
    tail_limit: usize,
    tail_after: u64,
}

impl<'a> Replay<'a> {
    /// Begins with no objects at revision `base`.
    pub(super) fn new(base: u64, tail_limit: usize) -> Self {
        Self {
            live: HashMap::new(),
            tail: VecDeque::new(),
            tail_limit,
            tail_after: base,
        }
    }

    /// An object of a snapshot.
    pub(super) fn restore(&mut self, record: RawRecord<'a>) {
        if let Some(value) = record.value {
            self.live.insert(record.key, (record.revision, value));
        }
    }

    /// A write of a log.
    pub(super) fn apply(&mut self, record: RawRecord<'a>) {
        let previous = match record.value {
            Some(value) => self.live.insert(record.key, (record.revision, value)),
            None => self.live.remove(record.key),
        };
        self.tail.push_back((record, previous));
        if self.tail.len() > self.tail_limit
            && let Some((dropped, _)) = self.tail.pop_front()
        {
            self.tail_after = dropped.revision;
        }
    }

    /// The objects by key, the tail, and the revision after which the tail begins.
    pub(super) fn finish(self) -> (Vec<Record>, Vec<Change>, u64) {
        let mut live: Vec<_> = self.live.into_iter().collect();
        live.sort_unstable_by_key(|(key, _)| *key);
        let live: Vec<Record> = live.into_iter().map(|(k, v)| record(k, v)).collect();
        let mut copies = Copies {
            live: &live,
            others: HashMap::new(),
        };
        let tail = self
            .tail
            .into_iter()
            .map(|(written, previous)| Change {
                previous: previous.map(|version| copies.of(written.key, version)),
                record: match written.value {
                    Some(value) => copies.of(written.key, (written.revision, value)),
                    None => deletion(&written),
                },
            })
            .collect();
        (live, tail, self.tail_after)
    }
}

/// Makes sure that each version is in memory once, however often the tail speaks of it.
struct Copies<'l> {
    live: &'l [Record],
    /// By revision, which is one write's alone.
    others: HashMap<u64, Record>,
}

impl Copies<'_> {
    fn of(&mut self, key: &[u8], version: Version<'_>) -> Record {
        let found = self.live.binary_search_by(|record| (*record.key).cmp(key));
        if let Some(record) = found.ok().map(|at| &self.live[at])
            && record.revision == version.0
        {
            return record.clone();
        }
        self.others
            .entry(version.0)
            .or_insert_with(|| record(key, version))
            .clone()
    }
}

fn record(key: &[u8], (revision, value): Version<'_>) -> Record {
    Record {
        revision,
        key: Bytes::copy_from_slice(key),
        value: Some(Bytes::copy_from_slice(value)),
    }
}

fn deletion(raw: &RawRecord<'_>) -> Record {
    Record {
        revision: raw.revision,
        key: Bytes::copy_from_slice(raw.key),
        value: None,
    }
}
