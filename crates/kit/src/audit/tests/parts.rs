//! An audit that is longer than one file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;
use crate::audit::{
    file::{Log, verify_up_to},
    parts::full,
};

/// Two records of these tests are longer than this, and one is not.
const FULL: u64 = 250;

/// Notes so many deeds, one at a time, as one process; where the chain stands after each.
fn noted(path: &Path, numbers: std::ops::RangeInclusive<u64>) -> Vec<Head> {
    let mut log = Log::open(path, FULL).unwrap();
    let heads = numbers.map(|number| {
        log.append(&[deed(number)]).unwrap();
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
fn seven() -> (tempfile::TempDir, PathBuf, Vec<Head>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut heads = noted(&path, 1..=4);
    heads.extend(noted(&path, 5..=7));
    (folder, path, heads)
}

fn fault(found: Result<Head, Error>) -> (String, u64, Fault) {
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
fn a_full_file_is_put_aside_and_the_chain_goes_on() {
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
    // What another process would have written into one file.
    let (lines, whole) = chain(7);
    assert_eq!(heads[6], whole);
    assert_eq!(fs::read_to_string(&path).unwrap(), lines[6]);
}

#[test]
fn an_edit_is_found_in_any_part() {
    let (folder, path, heads) = seven();
    for name in names(folder.path()) {
        let part = folder.path().join(&name);
        let whole = fs::read_to_string(&part).unwrap();
        fs::write(&part, whole.replacen("done", "none", 1)).unwrap();
        let (named, before, fault) = fault(verify_file(&path, Some(&heads[6])));
        assert_eq!(named, name);
        // The first line of the part that it is in.
        assert_eq!(fault, Fault::Edited { index: before + 1 });
        fs::write(&part, whole).unwrap();
    }
    verify_file(&path, Some(&heads[6])).unwrap();
}

#[test]
fn a_part_that_is_missing_is_found() {
    for (gone, first, last) in [(1, 1, 2), (3, 3, 4), (5, 5, 6)] {
        let (folder, path, _) = seven();
        fs::remove_file(folder.path().join(format!("audit.jsonl.{gone:012}"))).unwrap();
        let (_, _, fault) = fault(verify_file(&path, None));
        assert_eq!(fault, Fault::Missing { first, last });
    }
    let (_folder, path, heads) = seven();
    fs::remove_file(&path).unwrap();
    // Without an anchor nobody can tell.
    assert_eq!(verify_file(&path, None).unwrap(), heads[5]);
    let (_, _, fault) = fault(verify_file(&path, Some(&heads[6])));
    let truncated = Fault::Truncated {
        last: 6,
        anchored: 7,
    };
    assert_eq!(fault, truncated);
}

#[test]
fn a_part_that_was_cut_is_found() {
    let (folder, path, _) = seven();
    let part = folder.path().join("audit.jsonl.000000000003");
    let whole = fs::read_to_string(&part).unwrap();
    let first = whole.split_inclusive('\n').next().unwrap();
    fs::write(&part, first).unwrap();
    let missing = Fault::Missing { first: 4, last: 4 };
    assert_eq!(fault(verify_file(&path, None)).2, missing);
    fs::write(&part, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(fault(verify_file(&path, None)).2, Fault::Torn { index: 4 });
    fs::write(&path, "").unwrap();
    fs::remove_file(folder.path().join("audit.jsonl.000000000005")).unwrap();
    // Nothing is added to what is not whole.
    let refused = Log::open(&path, FULL).map(|log| log.head);
    assert_eq!(fault(refused).2, Fault::Unreadable { line: 3 });
}

#[test]
fn a_crash_while_turning_over_loses_nothing() {
    let (_folder, path, heads) = seven();
    let aside = full(&path, 7);
    fs::rename(&path, &aside).unwrap();
    assert!(is_there(&path));
    assert_eq!(verify_file(&path, Some(&heads[6])).unwrap(), heads[6]);
    let head = noted(&path, 8..=8).remove(0);
    assert_eq!(verify_file(&path, Some(&head)).unwrap().index, 8);
    assert_eq!(chain(8).1, head);
}

#[test]
fn a_part_that_is_there_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = Log::open(&path, FULL).unwrap();
    log.append(&[deed(1), deed(2)]).unwrap();
    let precious = full(&path, 1);
    fs::write(&precious, "precious").unwrap();
    log.append(&[deed(3)]).unwrap_err();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    fs::remove_file(&precious).unwrap();
    log.append(&[deed(3)]).unwrap();
    assert_eq!(verify_file(&path, None).unwrap(), log.head);
}

#[test]
fn only_what_follows_an_anchor_is_read_to_replace_it() {
    let (folder, path, heads) = seven();
    // What is older is not looked at.
    fs::write(folder.path().join("audit.jsonl.000000000001"), "noise\n").unwrap();
    verify_up_to(&path, &heads[6], Some(&heads[4])).unwrap();
    verify_up_to(&path, &heads[5], Some(&heads[5])).unwrap();
    let other = Head {
        index: 5,
        ..heads[3].clone()
    };
    let Err(Error::Damaged { fault, .. }) = verify_up_to(&path, &heads[6], Some(&other)) else {
        panic!("an anchor that the chain does not lead to");
    };
    assert_eq!(fault, Fault::Rewritten { index: 5 });
    let noise = verify_up_to(&path, &heads[6], Some(&heads[0]));
    assert!(matches!(noise, Err(Error::Damaged { .. })), "{noise:?}");
}

#[test]
fn the_last_record_of_a_part_is_found_however_long_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = Log::open(&path, FULL).unwrap();
    let mut long = deed(1);
    long.outcome = "x".repeat(300_000);
    log.append(&[deed(1), long]).unwrap();
    log.append(&[deed(3)]).unwrap();
    let head = log.head.clone();
    drop(log);
    assert_eq!(Log::open(&path, FULL).unwrap().head, head);
}
