//! Full and broken disks.

use std::{error::Error as _, io::ErrorKind};

use super::*;
use crate::store::journal::faulty::{Dice, DiskCall, LOSSES, Loss};

#[test]
fn a_failed_write_names_the_file_and_the_remedy_and_ends_the_journal() {
    let cases = [
        (
            DiskCall::Write,
            ErrorKind::StorageFull,
            "cannot write",
            "free space",
        ),
        (
            DiskCall::SetLen,
            ErrorKind::StorageFull,
            "cannot grow",
            "free space",
        ),
        (
            DiskCall::Sync,
            ErrorKind::Other,
            "cannot sync",
            "check the disk",
        ),
        (
            DiskCall::Write,
            ErrorKind::ReadOnlyFilesystem,
            "cannot write",
            "writable",
        ),
    ];
    for (call, kind, action, remedy) in cases {
        let disk = FaultyDisk::default();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&[put(1, "a", "x")]).unwrap();
        disk.fail(call, kind);
        let batch = [put(2, "b", &"y".repeat(400))];
        let error = journal.append(&batch).unwrap_err();
        let message = error.to_string();
        for part in [action, remedy, "/data/log-00000000000000000000.seg"] {
            assert!(message.contains(part), "{call:?}: {message}");
        }
        assert!(error.source().is_some());

        let calls = disk.calls();
        disk.fail(DiskCall::Remove, kind);
        assert_eq!(journal.append(&batch).unwrap_err().to_string(), message);
        assert_eq!(journal.append(&[]).unwrap_err().to_string(), message);
        assert!(journal.begin_compaction(2).is_err());
        assert!(!journal.wants_compaction());
        assert!(journal.close().is_err());
        assert_eq!(
            disk.calls(),
            calls,
            "a failed journal leaves the disk alone"
        );
    }
}

/// After a failed sync the system shows bytes that are not on the disk.
#[test]
fn what_is_found_after_a_failed_sync_is_made_durable_first() {
    for rotate in [false, true] {
        let disk = FaultyDisk::default();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&[put(1, "a", "x")]).unwrap();
        disk.fail(DiskCall::Sync, ErrorKind::Other);
        if rotate {
            assert!(journal.begin_compaction(1).is_err());
        } else {
            assert!(journal.append(&[put(2, "b", "y")]).is_err());
        }
        let mut dice = Dice::new(1);
        let restarted = disk.restart(Loss::Process, &mut dice);
        let (mut journal, found) = open(&restarted).unwrap();
        let after = restarted.restart(Loss::Everything, &mut dice);
        assert_eq!(open(&after).unwrap().1, found);
        journal.append(&[put(3, "c", "z")]).unwrap();
        let after = restarted.restart(Loss::Everything, &mut dice);
        assert_eq!(open(&after).unwrap().1.revision, 3);
    }
}

#[test]
fn a_snapshot_that_cannot_be_written_leaves_the_journal_as_it_was() {
    for call in [DiskCall::Write, DiskCall::Sync, DiskCall::Create] {
        let (disk, mut journal, mut model) = written_disk();
        let compaction = journal.begin_compaction(7).unwrap();
        disk.fail(call, ErrorKind::StorageFull);
        let error = compaction.write(&mut model.live().into_iter()).unwrap_err();
        assert!(error.to_string().contains("/data/snapshot-"), "{error}");
        assert!(error.to_string().contains("free space"), "{error}");
        disk.fail(DiskCall::Remove, ErrorKind::Other);
        assert!(
            !disk
                .list()
                .unwrap()
                .iter()
                .any(|name| name.contains(".tmp"))
        );

        assert!(!journal.wants_compaction());
        let batch = [put(8, "f", "eight")];
        journal.append(&batch).unwrap();
        model.apply(&batch);
        assert!(model.matches(&open(&disk.copy()).unwrap().1), "{call:?}");
    }
}

#[test]
fn a_snapshot_that_cannot_be_named_takes_no_effect() {
    for call in [DiskCall::Rename, DiskCall::SyncFolder, DiskCall::Remove] {
        let (disk, mut journal, mut model) = written_disk();
        let compaction = journal.begin_compaction(7).unwrap();
        let snapshot = compaction.write(&mut model.live().into_iter()).unwrap();
        disk.fail(call, ErrorKind::Other);
        let error = journal.finish_compaction(snapshot).unwrap_err();
        assert!(error.to_string().contains("/data"), "{error}");
        disk.fail(DiskCall::Create, ErrorKind::Other);
        let batch = [put(8, "f", "eight")];
        journal.append(&batch).unwrap();
        model.apply(&batch);
        for loss in [Loss::Everything, Loss::Nothing] {
            let after = disk.restart(loss, &mut Dice::new(1));
            assert!(model.matches(&open(&after).unwrap().1), "{call:?} {loss:?}");
        }
    }
}

#[test]
fn a_full_disk_can_be_opened_and_read() {
    let (disk, _, model) = written_disk();
    let full = disk.copy();
    full.fail(DiskCall::SetLen, ErrorKind::StorageFull);
    assert!(model.matches(&open(&full).unwrap().1));
}

/// As when no descriptor is left for a moment.
#[test]
fn a_rotation_that_fails_leaves_the_journal_writable_and_is_tried_again() {
    for call in [
        DiskCall::Create,
        DiskCall::SetLen,
        DiskCall::Write,
        DiskCall::Sync,
        DiskCall::SyncFolder,
    ] {
        let (disk, mut journal, mut model) = written_disk();
        disk.fail(call, ErrorKind::Other);
        assert!(journal.begin_compaction(7).is_err());
        // No rename takes place before the snapshot is complete.
        disk.fail(DiskCall::Rename, ErrorKind::Other);
        let batch = [put(8, "f", "eight")];
        journal.append(&batch).unwrap();
        model.apply(&batch);
        for loss in LOSSES {
            for seed in 0..20 {
                let after = disk.restart(loss, &mut Dice::new(seed));
                let found = open(&after).unwrap().1;
                assert!(model.matches(&found), "{call:?} {loss:?} {seed}");
            }
        }
        drop(journal.begin_compaction(8).unwrap());
        let batch = [put(9, "g", "nine")];
        journal.append(&batch).unwrap();
        model.apply(&batch);
        for loss in LOSSES {
            let after = disk.restart(loss, &mut Dice::new(1));
            let found = open(&after).unwrap().1;
            assert!(model.matches(&found), "again {call:?} {loss:?}");
        }
    }
}
