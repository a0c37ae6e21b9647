//! Files that were changed, truncated or removed by another program.

use super::*;

fn path_in(error: &Error) -> String {
    match error {
        Error::Corrupt { path, .. }
        | Error::Missing { path, .. }
        | Error::Format { path, .. }
        | Error::NotAFormat { path } => path.display().to_string(),
        other => panic!("not about a file: {other}"),
    }
}

/// Damage may go undetected only where nothing was written, or where it loses nothing.
#[test]
fn a_flipped_bit_is_noticed_or_harmless_after_an_orderly_stop() {
    let (disk, journal, model) = written_disk();
    journal.close().unwrap();
    for name in disk.list().unwrap() {
        let len = disk.read(&name).unwrap().len();
        let mut noticed = 0;
        for at in 0..len {
            let copy = disk.copy();
            copy.tamper(&name, |file| file[at] ^= 1 << (at % 8));
            match open(&copy) {
                Ok((_, found)) => assert!(model.matches(&found), "{name} at {at}: {found:#?}"),
                Err(error) => {
                    assert_eq!(path_in(&error), format!("/data/{name}"), "at {at}");
                    noticed += 1;
                }
            }
        }
        assert!(noticed > 15, "{name}: {noticed} of {len}");
    }
}

/// The limit in the module's documentation: without an orderly stop, only the last batch is in
/// doubt.
#[test]
fn after_a_crash_only_the_last_batch_is_in_doubt() {
    let (disk, _, model) = written_disk();
    let name = layout::log(4);
    let log = disk.read(&name).unwrap();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap();
    let mut without_last = model.clone();
    without_last.live.remove(&b"e"[..]);
    without_last.history.pop();
    without_last.revision = 6;
    let mut dropped = 0;
    for at in 0..=used {
        let copy = disk.copy();
        copy.tamper(&name, |file| file[at] ^= 0x10);
        match open(&copy) {
            Err(error) => assert_eq!(path_in(&error), format!("/data/{name}")),
            Ok((_, found)) => {
                assert!(without_last.matches(&found), "at {at}: {found:#?}");
                dropped += 1;
            }
        }
    }
    let last_frame = frame::FRAME_HEADER + record_len(&put(7, "e", "seven"));
    assert_eq!(dropped, last_frame);
}

#[test]
fn a_file_that_was_cut_off_is_noticed() {
    let (disk, ..) = written_disk();
    for name in disk.list().unwrap() {
        let len = disk.read(&name).unwrap().len();
        for shorter in 0..len {
            let copy = disk.copy();
            copy.tamper(&name, |file| file.truncate(shorter));
            // The content without its line break is still complete.
            if name == layout::FORMAT && shorter == len - 1 {
                continue;
            }
            let error = open(&copy).expect_err(&format!("{name} cut to {shorter} of {len}"));
            assert_eq!(path_in(&error), format!("/data/{name}"));
        }
    }
}

#[test]
fn a_file_that_was_removed_is_noticed() {
    let (disk, ..) = written_disk();
    let names = disk.list().unwrap();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in names {
        let copy = disk.copy();
        copy.remove(&name).unwrap();
        let error = open(&copy).expect_err(&name);
        assert!(matches!(error, Error::Missing { .. }), "{name}: {error}");
        assert_eq!(path_in(&error), format!("/data/{name}"));
    }
}

#[test]
fn a_damaged_folder_is_not_changed() {
    let (disk, ..) = written_disk();
    disk.tamper(&layout::log(2), |file| file[100] ^= 1);
    let calls = disk.calls();
    let message = open(&disk).unwrap_err().to_string();
    assert_eq!(disk.calls(), calls);
    for part in ["log-00000000000000000002.seg is damaged at byte", "backup"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let (disk, _, model) = written_disk();
    for name in [
        "lost+found",
        "log-1.seg",
        "snapshot-00000000000000000009.old",
    ] {
        disk.create(name).unwrap();
    }
    disk.sync_folder().unwrap();
    assert!(model.matches(&open(&disk).unwrap().1));
    assert_eq!(disk.list().unwrap().len(), 7);
}
