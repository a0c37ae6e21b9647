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

/// The names and contents of all files.
fn contents(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn verify_reports_what_open_would_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    Journal::verify(&folder).unwrap();
    assert!(!folder.exists());
    let open = || {
        let disk = FolderDisk::open(&folder)?;
        Journal::open(Box::new(disk), SMALL)
    };
    let (mut journal, _) = open().unwrap();
    for revision in 1..20 {
        journal
            .append(&[put(revision, "a", "one value of some length")])
            .unwrap();
    }
    let live = [put(19, "a", "one value of some length")];
    journal.compact(19, &mut live.into_iter()).unwrap();
    for revision in 20..40 {
        journal
            .append(&[put(revision, "b", "another value")])
            .unwrap();
    }
    journal.close().unwrap();
    Journal::verify(&folder).unwrap();
    let good = contents(&folder);
    let mut refused = 0;
    for (name, bytes) in &good {
        let path = folder.join(name);
        let mut flipped = bytes.clone();
        if let Some(byte) = flipped.get_mut(bytes.len() / 4) {
            *byte ^= 0x20;
        }
        let cut = bytes[..bytes.len() / 3].to_vec();
        for damaged in [None, Some(flipped), Some(cut), Some(b"noise\n".to_vec())] {
            match &damaged {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            let before = contents(&folder);
            let verified = Journal::verify(&folder).map_err(|error| error.to_string());
            assert_eq!(contents(&folder), before, "{name}");
            let opened = open().map(drop).map_err(|error| error.to_string());
            assert_eq!(verified, opened, "{name}");
            refused += usize::from(opened.is_err());
            for (name, bytes) in &good {
                fs::write(folder.join(name), bytes).unwrap();
            }
            for name in contents(&folder)
                .keys()
                .filter(|name| !good.contains_key(*name))
            {
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
    }
    assert!(refused > 6, "{refused}");
}
