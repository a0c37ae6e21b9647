//! Reads at past revisions: objects, ranges, and the events since.
//!
//! Nothing is stored twice for it: the past is the present with the newer events undone.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use super::{
    State,
    bucket::{Bucket, Objects},
};
use crate::store::{Error, Event, Object};

/// A part of a resource in key order.
#[derive(Debug, Clone, Default)]
pub struct KeyRange<'a> {
    /// Only this namespace, if not empty.
    pub namespace: &'a str,
    /// Only keys after this one.
    pub after: Option<&'a str>,
    /// At most this many objects; the rest is counted.
    pub limit: Option<usize>,
}

impl<'a> KeyRange<'a> {
    /// All of a namespace, or of all namespaces if it is empty.
    pub fn of(namespace: &'a str) -> Self {
        Self {
            namespace,
            ..Self::default()
        }
    }
}

/// Bounds on the history read at a time.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Batch {
    pub(in crate::store) events: usize,
    pub(in crate::store) bytes: usize,
}

/// Objects read at one revision, in key order.
#[derive(Debug)]
pub struct Page {
    /// The revision at which all of them were read.
    pub revision: u64,
    /// Keys and objects.
    pub objects: Vec<(Arc<str>, Arc<Object>)>,
    /// How many more objects the range has.
    pub remaining: usize,
}

impl Page {
    /// The first of `objects`, up to the limit of the range; `key` makes an owned key.
    fn cut<'a, K>(
        revision: u64,
        range: &KeyRange<'_>,
        mut objects: impl Iterator<Item = (K, &'a Arc<Object>)>,
        key: impl Fn(K) -> Arc<str>,
    ) -> Self {
        let taken = objects.by_ref().take(range.limit.unwrap_or(usize::MAX));
        let taken = taken.map(|(path, object)| (key(path), object.clone()));
        Self {
            revision,
            objects: taken.collect(),
            remaining: objects.count(),
        }
    }
}

impl State {
    /// Whether the state at `revision` can be read.
    pub(in crate::store) fn check(&self, revision: u64) -> Result<(), Error> {
        if revision > self.committed {
            return Err(Error::Future {
                asked: revision,
                newest: self.committed,
            });
        }
        if revision < self.compacted {
            return Err(Error::Compacted {
                asked: revision,
                oldest: self.compacted,
            });
        }
        Ok(())
    }

    /// One object as it was at `revision`, which must have been checked.
    pub(in crate::store) fn get(
        &self,
        resource: &str,
        path: &str,
        revision: u64,
    ) -> Option<Arc<Object>> {
        let bucket = self.buckets.get(resource)?;
        let newer = bucket
            .log
            .iter()
            .rev()
            .take_while(|e| e.revision() > revision);
        match newer.filter(|e| *e.path == *path).last() {
            Some(event) => event.previous.clone(),
            None => bucket.objects.get(path).cloned(),
        }
    }

    /// The objects of a range as they were at `revision`, which must have been checked.
    pub(in crate::store) fn page(
        &self,
        resource: &str,
        range: &KeyRange<'_>,
        revision: u64,
    ) -> Page {
        let Some(bucket) = self.buckets.get(resource) else {
            return Page::cut(revision, range, std::iter::empty(), Arc::clone);
        };
        let undo = undo(bucket, revision);
        if undo.is_empty() {
            return Page::cut(revision, range, scan(&bucket.objects, range), Arc::clone);
        }
        let objects = undone(bucket, range, &undo).into_iter();
        Page::cut(revision, range, objects, Into::into)
    }

    /// Events of a resource after `after` and up to `until`: as many as fit into a batch, and
    /// whether there are more.
    pub(in crate::store) fn events(
        &self,
        resource: &str,
        after: u64,
        until: u64,
        batch: Batch,
    ) -> (Vec<Arc<Event>>, bool) {
        let Some(bucket) = self.buckets.get(resource) else {
            return (Vec::new(), false);
        };
        let start = bucket.log.partition_point(|e| e.revision() <= after);
        let mut bytes = 0;
        let mut events = Vec::new();
        let rest = bucket.log.range(start..);
        for event in rest.take_while(|e| e.revision() <= until) {
            bytes += event.weight();
            // One event is returned however large it is.
            if events.len() == batch.events || (bytes > batch.bytes && !events.is_empty()) {
                return (events, true);
            }
            events.push(event.clone());
        }
        (events, false)
    }

    /// The revision `events` changes before the newest.
    pub(in crate::store) fn lagging(&self, events: usize) -> u64 {
        let Some(newest) = self.log.len().checked_sub(events + 1) else {
            return self.compacted;
        };
        self.log
            .get(newest)
            .map_or(self.committed, |e| e.revision())
    }

    pub(in crate::store) fn changes_after(&self, revision: u64, most: usize) -> Vec<Arc<Event>> {
        let start = self
            .log
            .partition_point(|event| event.revision() <= revision);
        self.log.range(start..).take(most).cloned().collect()
    }
}

/// The part of `objects` in `range`.
pub(super) fn scan<'a>(
    objects: &'a Objects,
    range: &KeyRange<'_>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
    let prefix = prefix(range);
    let start: Bound<Arc<str>> = match range.after {
        Some(after) if after >= prefix.as_str() => Bound::Excluded(after.into()),
        _ => Bound::Included(prefix.as_str().into()),
    };
    objects
        .range((start, Bound::Unbounded))
        .take_while(move |(key, _)| key.starts_with(prefix.as_str()))
}

pub(super) fn prefix(range: &KeyRange<'_>) -> String {
    match range.namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    }
}

/// The changes to undo to see a bucket as it was at `revision`.
fn undo(bucket: &Bucket, revision: u64) -> HashMap<&str, Option<&Arc<Object>>> {
    let newest_first = bucket.log.iter().rev();
    newest_first
        .take_while(|event| event.revision() > revision)
        .map(|event| (&*event.path, event.previous.as_ref()))
        .collect()
}

/// The slow path of a page: today's objects with the changes since undone.
fn undone<'a>(
    bucket: &'a Bucket,
    range: &KeyRange<'_>,
    undo: &HashMap<&'a str, Option<&'a Arc<Object>>>,
) -> BTreeMap<&'a str, &'a Arc<Object>> {
    let prefix = prefix(range);
    let inside =
        |key: &str| key.starts_with(&prefix) && range.after.is_none_or(|after| key > after);
    let present = scan(&bucket.objects, range).map(|(key, object)| (&**key, object));
    let mut objects: BTreeMap<_, _> = present.filter(|(key, _)| !undo.contains_key(key)).collect();
    let past = undo.iter().filter(|(path, _)| inside(path));
    objects.extend(past.filter_map(|(path, previous)| Some((*path, (*previous)?))));
    objects
}
