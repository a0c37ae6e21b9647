mod damage;
mod faults;
mod folder;
mod power_cut;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{faulty::FaultyDisk, *};

/// Small, so that a few batches fill several steps and require compaction.
const SMALL: JournalSettings = JournalSettings {
    tail_limit: 1000,
    compact_above: 4096,
    step: 256,
};

fn put(revision: u64, key: &str, value: &str) -> Record {
    Record {
        revision,
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
    }
}

fn delete(revision: u64, key: &str) -> Record {
    Record {
        value: None,
        ..put(revision, key, "")
    }
}

fn open(disk: &FaultyDisk) -> Result<(Journal, Recovered), Error> {
    Journal::open(Box::new(disk.clone()), SMALL)
}

/// The expected content of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    revision: u64,
    live: BTreeMap<Bytes, Record>,
    history: Vec<JournalChange>,
}

impl Model {
    fn apply(&mut self, batch: &[Record]) {
        for record in batch {
            let previous = match record.value {
                Some(_) => self.live.insert(record.key.clone(), record.clone()),
                None => self.live.remove(&record.key),
            };
            self.history.push(JournalChange {
                record: record.clone(),
                previous,
            });
            self.revision = record.revision;
        }
    }

    fn live(&self) -> Vec<Record> {
        self.live.values().cloned().collect()
    }

    /// Whether `recovered` matches, with a tail that misses nothing after its beginning.
    fn matches(&self, recovered: &Recovered) -> bool {
        let tail = self
            .history
            .iter()
            .filter(|change| change.record.revision > recovered.tail_after);
        self.revision == recovered.revision
            && self.live() == recovered.live
            && tail.eq(&recovered.tail)
    }
}

/// A disk with a snapshot, a sealed log, and a last log; and its content.
fn written_disk() -> (FaultyDisk, Journal, Model) {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    let mut model = Model::default();
    let mut write = |journal: &mut Journal, batch: &[Record]| {
        journal.append(batch).unwrap();
        model.apply(batch);
    };
    write(&mut journal, &[put(1, "a", "one"), put(2, "b", "two")]);
    let live = [put(1, "a", "one"), put(2, "b", "two")];
    journal.compact(2, &mut live.into_iter()).unwrap();
    write(&mut journal, &[put(3, "c", "three")]);
    write(&mut journal, &[put(4, "a", &"four ".repeat(80))]);
    drop(journal.begin_compaction(4).unwrap());
    write(&mut journal, &[delete(5, "b"), put(6, "d", "six")]);
    write(&mut journal, &[put(7, "e", "seven")]);
    (disk, journal, model)
}

#[test]
fn a_new_folder_is_empty_at_revision_zero() {
    let (_, recovered) = open(&FaultyDisk::default()).unwrap();
    let expected = Recovered {
        revision: 0,
        live: Vec::new(),
        tail: Vec::new(),
        tail_after: 0,
    };
    assert_eq!(recovered, expected);
}

#[test]
fn everything_written_is_read_back_with_what_it_replaced() {
    let (disk, _, model) = written_disk();
    let (journal, recovered) = open(&disk.copy()).unwrap();
    assert!(model.matches(&recovered), "{recovered:#?}");
    assert_eq!((recovered.tail_after, recovered.tail.len()), (2, 5));
    assert_eq!(journal.revision(), 7);
    let deleted = &recovered.tail[2];
    assert_eq!(deleted.record, delete(5, "b"));
    assert_eq!(deleted.previous, Some(put(2, "b", "two")));
}

#[test]
fn the_tail_is_bounded_and_says_where_it_begins() {
    let (disk, ..) = written_disk();
    let settings = JournalSettings {
        tail_limit: 2,
        ..SMALL
    };
    let (_, recovered) = Journal::open(Box::new(disk.copy()), settings).unwrap();
    let revisions: Vec<_> = recovered.tail.iter().map(|c| c.record.revision).collect();
    assert_eq!((recovered.tail_after, revisions), (5, vec![6, 7]));
}

#[test]
fn the_revision_survives_when_nothing_else_does() {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[put(41, "a", "x")]).unwrap();
    journal.append(&[delete(42, "a")]).unwrap();
    journal.compact(42, &mut std::iter::empty()).unwrap();
    let recovered = open(&disk.copy()).unwrap().1;
    assert_eq!((recovered.revision, recovered.live.len()), (42, 0));
    journal.compact(50, &mut std::iter::empty()).unwrap();
    assert_eq!(open(&disk.copy()).unwrap().1.revision, 50);
    let refused = journal.append(&[put(50, "a", "x")]);
    assert!(matches!(
        refused,
        Err(Error::Backwards {
            revision: 50,
            last: 50
        })
    ));
}

#[test]
fn a_batch_costs_one_write_and_one_sync() {
    let disk = FaultyDisk::default();
    let (mut journal, _) =
        Journal::open(Box::new(disk.clone()), JournalSettings::default()).unwrap();
    let before = disk.calls();
    for revision in 1..=100 {
        journal.append(&[put(revision, "a", "value")]).unwrap();
    }
    assert_eq!(disk.calls() - before, 200);
}

#[test]
fn revisions_that_go_back_are_refused_and_harm_nothing() {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[put(5, "a", "x")]).unwrap();
    for batch in [
        vec![put(5, "a", "y")],
        vec![put(4, "a", "y")],
        vec![put(7, "a", "y"), put(7, "b", "y")],
    ] {
        let result = journal.append(&batch);
        assert!(matches!(result, Err(Error::Backwards { .. })), "{batch:?}");
    }
    journal.append(&[put(6, "a", "z")]).unwrap();
    assert_eq!(open(&disk.copy()).unwrap().1.live, vec![put(6, "a", "z")]);
}

#[test]
fn compaction_keeps_the_folder_small() {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    let mut model = Model::default();
    let mut largest = 0;
    for revision in 1..=2000 {
        let batch = [put(revision, &format!("k{}", revision % 10), "a value")];
        journal.append(&batch).unwrap();
        model.apply(&batch);
        if journal.wants_compaction() {
            let live = model.live();
            journal.compact(revision, &mut live.into_iter()).unwrap();
            assert!(!journal.wants_compaction());
        }
        let names = disk.list().unwrap();
        let sizes = names.iter().map(|name| disk.read(name).unwrap().len());
        largest = largest.max(sizes.sum());
    }
    assert!(largest < 3 * 4096, "{largest}");
    assert!(model.matches(&open(&disk.copy()).unwrap().1));
}

#[test]
fn batches_go_on_while_a_snapshot_is_written_elsewhere() {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[put(1, "a", "x")]).unwrap();
    let compaction = journal.begin_compaction(1).unwrap();
    assert!(matches!(
        journal.begin_compaction(1),
        Err(Error::Compacting)
    ));
    journal.append(&[put(2, "b", "y")]).unwrap();
    let writer = std::thread::spawn(|| compaction.write(&mut [put(1, "a", "x")].into_iter()));
    let snapshot = writer.join().unwrap().unwrap();
    journal.append(&[delete(3, "a")]).unwrap();
    journal.finish_compaction(snapshot).unwrap();
    let recovered = open(&disk.copy()).unwrap().1;
    assert_eq!((recovered.revision, recovered.tail_after), (3, 1));
    assert_eq!(recovered.live, vec![put(2, "b", "y")]);
}

#[test]
fn a_snapshot_takes_no_object_from_the_future() {
    let disk = FaultyDisk::default();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&[put(1, "a", "x")]).unwrap();
    let early = journal.compact(0, &mut std::iter::empty());
    assert!(matches!(early, Err(Error::NotInSnapshot { .. })));
    let newer = journal.compact(1, &mut [put(2, "a", "y")].into_iter());
    assert!(matches!(newer, Err(Error::NotInSnapshot { .. })));
    journal.append(&[put(2, "b", "y")]).unwrap();
    assert_eq!(open(&disk.copy()).unwrap().1.live.len(), 2);
}

/// A value that contains the bytes of a log must not be mistaken for a part of one.
#[test]
fn a_log_stored_as_a_value_is_only_a_value() {
    let (disk, ..) = written_disk();
    let log = disk.read(&layout::log(4)).unwrap();
    let other = FaultyDisk::default();
    let (mut journal, _) = open(&other).unwrap();
    let record = Record {
        value: Some(log.into()),
        ..put(8, "log", "")
    };
    journal.append(std::slice::from_ref(&record)).unwrap();
    assert_eq!(open(&other.copy()).unwrap().1.live, vec![record]);
    // Looks like a write that was interrupted at its beginning, with whole frames after it.
    other.tamper(&layout::log(0), |file| file[header::FILE_HEADER] ^= 1);
    assert_eq!(open(&other).unwrap().1.revision, 0);
}
