//! An audit of several files.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::*;
use crate::audit::{
    file::{AuditLog, verify_parts_up_to, verify_stable, verify_up_to},
    parts::full_part_path,
};

/// The maximum length of a file: two records of these tests are longer, one is not.
const PART_BYTES: u64 = 250;

/// Appends these actions one at a time, as one process. Returns the head after each.
fn append_all(path: &Path, numbers: std::ops::RangeInclusive<u64>) -> Vec<ChainHead> {
    let mut log = AuditLog::open(path, PART_BYTES).unwrap();
    let heads = numbers.map(|number| {
        log.append(&[action(number)]).unwrap();
        log.head.clone()
    });
    heads.collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Seven records in four files, written by two processes.
fn seven() -> (tempfile::TempDir, PathBuf, Vec<ChainHead>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut heads = append_all(&path, 1..=4);
    heads.extend(append_all(&path, 5..=7));
    (folder, path, heads)
}

fn fault(found: Result<ChainHead, Error>) -> (String, u64, ChainFault) {
    match found.unwrap_err() {
        Error::Damaged {
            path,
            before,
            fault,
        } => {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, before, fault)
        }
        other @ Error::Disk { .. } => panic!("{other:?}"),
    }
}

#[test]
fn a_full_file_is_renamed_and_the_chain_continues() {
    let (folder, path, heads) = seven();
    assert_eq!(
        names(folder.path()),
        [
            "audit.jsonl",
            "audit.jsonl.000000000001",
            "audit.jsonl.000000000003",
            "audit.jsonl.000000000005",
        ]
    );
    for anchor in &heads {
        assert_eq!(verify_file(&path, Some(anchor)).unwrap(), heads[6]);
    }
    // Equal to what one process would have written into one file.
    let (lines, whole) = chain(7);
    assert_eq!(heads[6], whole);
    assert_eq!(fs::read_to_string(&path).unwrap(), lines[6]);
}

#[test]
fn a_change_is_detected_in_any_part() {
    let (folder, path, heads) = seven();
    for name in names(folder.path()) {
        let part = folder.path().join(&name);
        let whole = fs::read_to_string(&part).unwrap();
        fs::write(&part, whole.replacen("done", "none", 1)).unwrap();
        let (named, before, fault) = fault(verify_file(&path, Some(&heads[6])));
        assert_eq!(named, name);
        // The change is in the first line of its part.
        assert_eq!(fault, ChainFault::Edited { index: before + 1 });
        fs::write(&part, whole).unwrap();
    }
    verify_file(&path, Some(&heads[6])).unwrap();
}

#[test]
fn a_missing_part_is_detected() {
    for (gone, first, last) in [(1, 1, 2), (3, 3, 4), (5, 5, 6)] {
        let (folder, path, _) = seven();
        fs::remove_file(folder.path().join(format!("audit.jsonl.{gone:012}"))).unwrap();
        let (_, _, fault) = fault(verify_file(&path, None));
        assert_eq!(fault, ChainFault::Missing { first, last });
    }
    let (_folder, path, heads) = seven();
    fs::remove_file(&path).unwrap();
    // Without an anchor this cannot be detected.
    assert_eq!(verify_file(&path, None).unwrap(), heads[5]);
    let (_, _, fault) = fault(verify_file(&path, Some(&heads[6])));
    let truncated = ChainFault::Truncated {
        last: 6,
        anchored: 7,
    };
    assert_eq!(fault, truncated);
}

#[test]
fn a_truncated_part_is_detected() {
    let (folder, path, _) = seven();
    let part = folder.path().join("audit.jsonl.000000000003");
    let whole = fs::read_to_string(&part).unwrap();
    let first = whole.split_inclusive('\n').next().unwrap();
    fs::write(&part, first).unwrap();
    let missing = ChainFault::Missing { first: 4, last: 4 };
    assert_eq!(fault(verify_file(&path, None)).2, missing);
    fs::write(&part, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(
        fault(verify_file(&path, None)).2,
        ChainFault::Torn { index: 4 }
    );
    fs::write(&path, "").unwrap();
    fs::remove_file(folder.path().join("audit.jsonl.000000000005")).unwrap();
    // Nothing is appended to a damaged audit.
    let refused = AuditLog::open(&path, PART_BYTES).map(|log| log.head);
    assert_eq!(fault(refused).2, ChainFault::Unreadable { line: 3 });
}

#[test]
fn a_crash_during_rotation_loses_nothing() {
    let (_folder, path, heads) = seven();
    let renamed = full_part_path(&path, 7);
    fs::rename(&path, &renamed).unwrap();
    assert!(audit_exists(&path));
    assert_eq!(verify_file(&path, Some(&heads[6])).unwrap(), heads[6]);
    let head = append_all(&path, 8..=8).remove(0);
    assert_eq!(verify_file(&path, Some(&head)).unwrap().index, 8);
    assert_eq!(chain(8).1, head);
}

#[test]
fn an_existing_part_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = AuditLog::open(&path, PART_BYTES).unwrap();
    log.append(&[action(1), action(2)]).unwrap();
    let precious = full_part_path(&path, 1);
    fs::write(&precious, "precious").unwrap();
    log.append(&[action(3)]).unwrap_err();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    fs::remove_file(&precious).unwrap();
    log.append(&[action(3)]).unwrap();
    assert_eq!(verify_file(&path, None).unwrap(), log.head);
}

#[test]
fn only_records_after_an_anchor_are_read_to_replace_it() {
    let (folder, path, heads) = seven();
    // Older parts are not read.
    fs::write(folder.path().join("audit.jsonl.000000000001"), "noise\n").unwrap();
    verify_up_to(&path, &heads[6], Some(&heads[4])).unwrap();
    verify_up_to(&path, &heads[5], Some(&heads[5])).unwrap();
    let other = ChainHead {
        index: 5,
        ..heads[3].clone()
    };
    let Err(Error::Damaged { fault, .. }) = verify_up_to(&path, &heads[6], Some(&other)) else {
        panic!("an anchor that the chain does not lead to");
    };
    assert_eq!(fault, ChainFault::Rewritten { index: 5 });
    let noise = verify_up_to(&path, &heads[6], Some(&heads[0]));
    assert!(matches!(noise, Err(Error::Damaged { .. })), "{noise:?}");
}

#[test]
fn the_last_record_of_a_part_is_found_at_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = AuditLog::open(&path, PART_BYTES).unwrap();
    let mut long = action(1);
    long.outcome = "x".repeat(300_000);
    log.append(&[action(1), long]).unwrap();
    log.append(&[action(3)]).unwrap();
    let head = log.head.clone();
    drop(log);
    assert_eq!(AuditLog::open(&path, PART_BYTES).unwrap().head, head);
}

#[test]
fn an_incomplete_record_is_removed_before_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (lines, _) = chain(4);
    // One batch of three is longer than a file may be, and the process ended while it wrote it.
    let mut torn = lines[..2].concat();
    assert!(torn.len() as u64 >= PART_BYTES);
    torn.push_str(&lines[2][..30]);
    fs::write(&path, torn).unwrap();
    let mut log = AuditLog::open(&path, PART_BYTES).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), lines[..2].concat());
    log.append(&[action(3), action(4)]).unwrap();
    assert_eq!(
        fs::read_to_string(full_part_path(&path, 1)).unwrap(),
        lines[..2].concat()
    );
    drop(log);
    let log = AuditLog::open(&path, PART_BYTES).unwrap();
    assert_eq!(log.head, chain(4).1);
    assert_eq!(verify_file(&path, Some(&log.head)).unwrap(), log.head);
}

#[test]
fn a_file_without_records_is_not_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = AuditLog::open(&path, 0).unwrap();
    log.append(&[action(1)]).unwrap();
    log.append(&[action(2)]).unwrap();
    assert_eq!(
        names(folder.path()),
        ["audit.jsonl", "audit.jsonl.000000000001"]
    );
    assert_eq!(AuditLog::open(&path, 0).unwrap().head, log.head);
}

#[test]
fn rotation_is_repeated_from_wherever_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = AuditLog::open(&path, PART_BYTES).unwrap();
    let sync_folder = log.sync_folder;
    log.append(&[action(1), action(2)]).unwrap();
    // The folder cannot be synced.
    log.sync_folder = |_| Err(io::ErrorKind::StorageFull.into());
    for _ in 0..3 {
        log.append(&[action(3), action(4)]).unwrap_err();
        assert_eq!(log.head, chain(2).1);
        assert_eq!(verify_file(&path, None).unwrap(), log.head);
    }
    log.sync_folder = sync_folder;
    log.append(&[action(3), action(4)]).unwrap();
    // The file was renamed, and the next one could not be created.
    fs::rename(&path, full_part_path(&path, 3)).unwrap();
    log.append(&[action(5)]).unwrap();
    assert_eq!(
        names(folder.path()),
        [
            "audit.jsonl",
            "audit.jsonl.000000000001",
            "audit.jsonl.000000000003",
        ]
    );
    assert_eq!(log.head, chain(5).1);
    assert_eq!(verify_file(&path, Some(&log.head)).unwrap(), log.head);
}

#[test]
fn the_folder_is_synced_before_the_first_record_after_a_start() {
    let (_folder, path, heads) = seven();
    let mut log = AuditLog::open(&path, PART_BYTES).unwrap();
    log.sync_folder = |_| Err(io::ErrorKind::StorageFull.into());
    // The previous process may have ended before it synced the folder.
    log.append(&[action(8)]).unwrap_err();
    assert_eq!(log.head, heads[6]);
}

#[test]
fn copies_made_by_users_are_not_parts() {
    let (folder, path, heads) = seven();
    for name in [
        "0",
        "1",
        "000000000000",
        "0000000000001",
        "+00000000001",
        "00000000001a",
        "99999999999999999999999",
        "old.000000000001",
        "",
    ] {
        fs::write(folder.path().join(format!("audit.jsonl.{name}")), "noise").unwrap();
    }
    fs::write(folder.path().join("other.jsonl.000000000001"), "noise").unwrap();
    assert_eq!(verify_file(&path, Some(&heads[6])).unwrap(), heads[6]);
    assert_eq!(AuditLog::open(&path, PART_BYTES).unwrap().head, heads[6]);
    // A number with more digits is a part.
    fs::write(full_part_path(&path, 1_000_000_000_000), "noise").unwrap();
    verify_file(&path, None).unwrap_err();
}

#[test]
fn a_file_that_is_rotated_during_verification_is_found() {
    // The next file may exist, with or without a record, or not yet.
    for begun in [None, Some(0), Some(1)] {
        let (_folder, path, heads) = seven();
        let (lines, _) = chain(8);
        let mut runs = 0;
        let found = verify_stable(&path, |parts| {
            runs += 1;
            if runs == 1 {
                fs::rename(&path, full_part_path(&path, 7)).unwrap();
                if let Some(records) = begun {
                    let mut file = OpenOptions::new();
                    let mut file = file.create_new(true).write(true).open(&path).unwrap();
                    let text = lines[7..7 + records].concat();
                    file.write_all(text.as_bytes()).unwrap();
                }
            }
            verify_parts_up_to(&path, parts, &heads[6], Some(&heads[5]))
        });
        found.unwrap();
        assert_eq!(runs, 2, "{begun:?}");
    }
    // Other faults are not verified again.
    let (_folder, path, heads) = seven();
    fs::remove_file(full_part_path(&path, 5)).unwrap();
    let mut runs = 0;
    let found = verify_stable(&path, |parts| {
        runs += 1;
        verify_parts_up_to(&path, parts, &heads[6], Some(&heads[3]))
    });
    found.unwrap_err();
    assert_eq!(runs, 1);
}
