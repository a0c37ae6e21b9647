//! Rebuilds the state from records borrowed from the files. Pure.
//!
//! Only what is kept is copied: live objects, and the changes of the tail. No file's buffer stays
//! in memory because of one small object in it.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::{JournalChange, Record, record::RawRecord};

/// A version of an object: its revision and value.
type ObjectVersion<'a> = (u64, &'a [u8]);

#[derive(Debug)]
pub(super) struct Replay<'a> {
    /// Every key with its version, if it exists. In the order of the snapshot, which is usually
    /// that of the keys, so that little is left to sort.
    slots: Vec<(&'a [u8], Option<ObjectVersion<'a>>)>,
    by_key: HashMap<&'a [u8], usize>,
    tail: VecDeque<LoggedWrite<'a>>,
    tail_limit: usize,
    tail_after: u64,
}

/// A write of a log, with the version it replaced.
#[derive(Debug)]
struct LoggedWrite<'a> {
    slot: usize,
    record: RawRecord<'a>,
    previous: Option<ObjectVersion<'a>>,
}

impl<'a> Replay<'a> {
    /// Starts with no objects at revision `base`.
    pub(super) fn new(base: u64, tail_limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            by_key: HashMap::new(),
            tail: VecDeque::new(),
            tail_limit,
            tail_after: base,
        }
    }

    /// Adds an object of a snapshot.
    pub(super) fn restore(&mut self, record: RawRecord<'a>) {
        self.set(&record);
    }

    /// Applies a write of a log.
    pub(super) fn apply(&mut self, record: RawRecord<'a>) {
        let (slot, previous) = self.set(&record);
        self.tail.push_back(LoggedWrite {
            slot,
            record,
            previous,
        });
        if self.tail.len() > self.tail_limit
            && let Some(dropped) = self.tail.pop_front()
        {
            self.tail_after = dropped.record.revision;
        }
    }

    fn set(&mut self, record: &RawRecord<'a>) -> (usize, Option<ObjectVersion<'a>>) {
        let version = record.value.map(|value| (record.revision, value));
        let next = self.slots.len();
        let slot = *self.by_key.entry(record.key).or_insert(next);
        if slot == next {
            self.slots.push((record.key, version));
            return (slot, None);
        }
        (slot, std::mem::replace(&mut self.slots[slot].1, version))
    }

    /// The objects by key, the tail, and the revision after which the tail begins.
    pub(super) fn finish(self) -> (Vec<Record>, Vec<JournalChange>, u64) {
        let slots: Vec<Option<Record>> = self
            .slots
            .iter()
            .map(|(key, version)| version.map(|version| copy(key, version)))
            .collect();
        let mut copies = Copies {
            slots: &slots,
            others: HashMap::new(),
        };
        let tail = self.tail.iter().map(|write| copies.change(write)).collect();
        let mut live: Vec<Record> = slots.into_iter().flatten().collect();
        live.sort_by(|a, b| a.key.cmp(&b.key));
        (live, tail, self.tail_after)
    }
}

/// Copies each version once, however often the tail refers to it.
struct Copies<'s> {
    slots: &'s [Option<Record>],
    /// By revision, which is unique.
    others: HashMap<u64, Record>,
}

impl Copies<'_> {
    fn change(&mut self, write: &LoggedWrite<'_>) -> JournalChange {
        let raw = &write.record;
        JournalChange {
            previous: write.previous.map(|old| self.of(write.slot, raw.key, old)),
            record: match raw.value {
                Some(value) => self.of(write.slot, raw.key, (raw.revision, value)),
                None => Record {
                    revision: raw.revision,
                    key: Bytes::copy_from_slice(raw.key),
                    value: None,
                },
            },
        }
    }

    fn of(&mut self, slot: usize, key: &[u8], version: ObjectVersion<'_>) -> Record {
        match &self.slots[slot] {
            Some(live) if live.revision == version.0 => live.clone(),
            _ => {
                let other = self.others.entry(version.0);
                other.or_insert_with(|| copy(key, version)).clone()
            }
        }
    }
}

fn copy(key: &[u8], (revision, value): ObjectVersion<'_>) -> Record {
    Record {
        revision,
        key: Bytes::copy_from_slice(key),
        value: Some(Bytes::copy_from_slice(value)),
    }
}
