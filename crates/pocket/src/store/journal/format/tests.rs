use super::*;
use crate::store::journal::{Journal, JournalSettings, faulty::FaultyDisk};

fn disk_with(text: &str) -> Arc<dyn Disk> {
    let disk = FaultyDisk::default();
    disk.create(FORMAT)
        .unwrap()
        .write_at(0, text.as_bytes())
        .unwrap();
    Arc::new(disk)
}

#[test]
fn a_newer_or_unknown_format_is_refused_with_both_versions() {
    for found in ["2", "0", "4000000000"] {
        let disk = disk_with(&format!("{LABEL}{found}\n"));
        let message = ensure(&disk, 256).unwrap_err().to_string();
        for part in [
            "/data/FORMAT",
            &format!("says format {found}"),
            "reads format 1",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}

#[test]
fn a_file_that_names_no_format_is_refused() {
    for text in [
        "",
        "\n",
        "1",
        "pocket data format",
        "pocket data format one",
    ] {
        let error = ensure(&disk_with(text), 256).unwrap_err();
        assert!(
            matches!(error, Error::NotAFormat { .. }),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn a_new_folder_says_its_format_in_plain_text() {
    let disk = FaultyDisk::default();
    Journal::open(Box::new(disk.clone()), JournalSettings::default()).unwrap();
    assert_eq!(disk.read(FORMAT).unwrap(), b"pocket data format 1\n");
}

fn note(disk: &Arc<dyn Disk>, name: &str) -> Result<(), Error> {
    let made = disk
        .create(name)
        .map_err(Error::io(&**disk, "create", name));
    made.map(drop)
}

#[test]
fn migrations_run_one_after_the_other_and_a_gap_refuses() {
    let steps: [(u32, Migration); 2] =
        [(1, |disk| note(disk, "one")), (2, |disk| note(disk, "two"))];
    let disk = disk_with("pocket data format 1\n");
    upgrade(&disk, &steps, 3).unwrap();
    assert_eq!(disk.list().unwrap(), [FORMAT, "one", "two"]);
    assert_eq!(read(&*disk).unwrap(), 3);

    let disk = disk_with("pocket data format 1\n");
    let refused = upgrade(&disk, &steps[1..], 3);
    assert!(matches!(
        refused,
        Err(Error::Format {
            found: 1,
            supported: 3,
            ..
        })
    ));
    assert_eq!(read(&*disk).unwrap(), 1);
}
