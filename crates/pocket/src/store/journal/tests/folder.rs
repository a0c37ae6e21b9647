//! The real folder.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;

#[test]
fn a_folder_keeps_what_was_written_and_hides_it_from_others() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("new/data");
    let disk = FolderDisk::open(&folder).unwrap();
    let (mut journal, _) = Journal::open(Box::new(disk), JournalSettings::default()).unwrap();
    journal.append(&[put(1, "a", "x")]).unwrap();
    journal
        .compact(1, &mut [put(1, "a", "x")].into_iter())
        .unwrap();
    journal.append(&[put(2, "b", "y")]).unwrap();
    journal.close().unwrap();

    let disk = FolderDisk::open(&folder).unwrap();
    let (_, recovered) = Journal::open(Box::new(disk), JournalSettings::default()).unwrap();
    assert_eq!(recovered.live, vec![put(1, "a", "x"), put(2, "b", "y")]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_folder_in_use_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let first = FolderDisk::open(place.path()).unwrap();
    let error = FolderDisk::open(place.path()).unwrap_err();
    assert!(matches!(&error, Error::InUse { path } if path == place.path()));
    assert!(error.to_string().contains("in use by another process"));
    drop(first);
    FolderDisk::open(place.path()).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = FolderDisk::open(file.join("data")).unwrap_err();
    assert!(error.to_string().contains("file/data"), "{error}");
}
