use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::*;

fn file(name: &str, content: &str) -> LayerFile {
    LayerFile {
        name: name.to_owned(),
        content: Some(content.into()),
        mode: 0o444,
        mtime: 1_700_000_000,
    }
}

fn limits(blob: &[u8]) -> Limits {
    Limits::for_manifests(blob.len() as u64)
}

fn names(blob: &[u8]) -> Result<Vec<String>, Error> {
    let found = read(blob, limits(blob), |_| true)?;
    Ok(found.into_iter().map(|entry| entry.head.name).collect())
}

/// An archive with names that `tar` itself would refuse to write.
fn archive(entries: &[(&str, &[u8], EntryType)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content, kind) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(*kind);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

use tar::EntryType;

#[test]
fn what_is_written_is_read_back() {
    let long = format!("release-manifests/{}.yaml", "x".repeat(180));
    let parts = format!("{}/{}", "d".repeat(120), "f".repeat(90));
    let files = [
        LayerFile {
            name: "release-manifests".to_owned(),
            content: None,
            mode: 0o777,
            mtime: 5,
        },
        file("release-manifests/a.yaml", "kind: A\n"),
        file(&long, "long"),
        file(&parts, ""),
        file("release-manifests/ümlaut.yaml", "u"),
    ];
    let blob = write(&files).unwrap();
    assert_eq!(blob.digest, crate::oci::digest::sha256(&blob.bytes));
    let found = read(&*blob.bytes, limits(&blob.bytes), |_| true).unwrap();
    assert_eq!(found.len(), files.len());
    for (entry, file) in found.iter().zip(&files) {
        assert_eq!(entry.head.name, file.name);
        assert_eq!((entry.head.mode, entry.head.mtime), (file.mode, file.mtime));
        assert_eq!(entry.content, file.content.clone().unwrap_or_default());
    }
    assert_eq!(found[0].head.kind, EntryKind::Directory);
}

#[test]
fn equal_files_give_equal_bytes_and_a_header_without_time_and_system() {
    let files = [file("a", "one"), file("b", "two")];
    let blob = write(&files).unwrap();
    assert_eq!(blob, write(&files).unwrap());
    assert_eq!(&blob.bytes[..10], &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
}

#[test]
fn names_that_lead_out_of_the_image_are_refused() {
    for name in ["../x", "a/../../x", "manifests/.."] {
        let blob = archive(&[(name, b"x", EntryType::Regular)]);
        let error = names(&blob).unwrap_err();
        assert!(
            matches!(&error, Error::Escape(found) if found == name),
            "{error}"
        );
    }
    let absolute = archive(&[("/./manifests//a", b"x", EntryType::Regular)]);
    assert_eq!(names(&absolute).unwrap(), ["manifests/a"]);
}

#[test]
fn truncated_and_damaged_layers_are_refused() {
    let blob = write(&[file("a", &"content ".repeat(1000))]).unwrap().bytes;
    for end in [0, 1, 5, 20, blob.len() / 2, blob.len() - 9] {
        let result = names(&blob[..end]);
        let empty = end == 0 && result.as_ref().is_ok_and(Vec::is_empty);
        assert!(
            empty || matches!(result, Err(Error::Damaged(_))),
            "{end}: {result:?}"
        );
    }
    assert!(
        names(
            b"this is no archive, but it is long enough "
                .repeat(20)
                .as_slice()
        )
        .is_err()
    );
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3];
    assert!(matches!(names(&zstd), Err(Error::Damaged(_))));
}

#[test]
fn a_decompression_bomb_ends_at_the_limit() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut head = tar::Header::new_ustar();
    head.as_old_mut().name[0] = b'a';
    head.set_size(400 << 20);
    head.set_mode(0o644);
    head.set_mtime(0);
    head.set_entry_type(EntryType::Regular);
    head.set_cksum();
    encoder.write_all(head.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..400 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    // Neither as a file that is wanted nor as one that is passed over.
    let wanted = read(&*bomb, limits(&bomb), |_| true).unwrap_err();
    assert!(matches!(wanted, Error::FileTooLarge { .. }), "{wanted}");
    let smaller = Limits {
        compressed: 1000,
        ..limits(&bomb)
    };
    let passed = read(&*bomb, smaller, |_| false).unwrap_err();
    assert!(matches!(passed, Error::Bomb { .. }), "{passed}");
}

#[test]
fn headers_entries_and_files_have_limits() {
    let huge = vec![b'x'; 2 << 20];
    let header = archive(&[
        ("long", &huge, EntryType::GNULongName),
        ("a", b"", EntryType::Regular),
    ]);
    assert!(matches!(names(&header), Err(Error::HeaderTooLarge(_))));
    let many = archive(&[
        ("a", b"1", EntryType::Regular),
        ("b", b"2", EntryType::Regular),
    ]);
    let few = Limits {
        entries: 1,
        ..limits(&many)
    };
    assert!(matches!(
        read(&*many, few, |_| true),
        Err(Error::TooManyEntries(1))
    ));
    let small = Limits {
        files: 1,
        ..limits(&many)
    };
    assert!(matches!(
        read(&*many, small, |_| true),
        Err(Error::FilesTooLarge(1))
    ));
}

#[test]
fn links_and_whiteouts_are_told_from_files() {
    let blob = archive(&[
        ("link", b"", EntryType::Symlink),
        ("hard", b"", EntryType::Link),
        ("d/.wh.gone", b"", EntryType::Regular),
    ]);
    let found = read(&*blob, limits(&blob), |_| true).unwrap();
    let kinds: Vec<_> = found.iter().map(|entry| entry.head.kind).collect();
    assert_eq!(
        kinds,
        [EntryKind::Symlink, EntryKind::HardLink, EntryKind::Whiteout]
    );
}
