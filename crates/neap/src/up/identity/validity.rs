//! Clocks that jumped back: certificates that are not valid yet, and files from the future.
//!
//! Clients refuse a certificate before its time with a message that names neither the server nor the
//! clock, so `neap up` and `neap check` say it first.

use std::{fs, path::Path, time::Duration};

use jiff::Timestamp;

use super::authority::CertificateWithKey;

/// The certificates in the folder of an identity.
const CERTIFICATES: [&str; 3] = ["ca.pem", "serving.pem", "admin.pem"];
/// Files in a data folder that are written again and again.
const WRITTEN_IN: [&str; 3] = ["", "identity", "store"];
/// How far ahead a file may be: clocks are adjusted by seconds all the time.
const TOLERANCE: Duration = Duration::from_mins(5);

/// What shows that the clock of this machine is behind the time when `data`, a data folder, was
/// written; empty if nothing does.
pub(crate) fn clock_problems(data: &Path, now: Timestamp) -> Vec<String> {
    let identity = data.join("identity");
    let early = CERTIFICATES.iter().filter_map(|file| {
        let path = identity.join(file);
        let pair = CertificateWithKey::from_pem(&fs::read_to_string(&path).ok()?).ok()?;
        let from = pair.valid_from().ok()?;
        (from > now).then(|| {
            format!(
                "the certificate in {} is valid from {from} on, and the clock of this machine shows {now}: clients refuse it; correct the clock",
                path.display()
            )
        })
    });
    let mut problems: Vec<String> = early.collect();
    let newest = WRITTEN_IN
        .iter()
        .filter_map(|folder| newest(&data.join(folder)));
    if let Some(newest) = newest.max()
        && newest > now + TOLERANCE
    {
        problems.push(format!(
            "the clock of this machine shows {now}, and files in {} were written at {newest}: it has jumped back, or it was ahead; tokens and certificates may be refused until it is right",
            data.display()
        ));
    }
    problems
}

/// When the newest file of a folder was written.
fn newest(folder: &Path) -> Option<Timestamp> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok().filter(fs::Metadata::is_file));
    files
        .filter_map(|file| Timestamp::try_from(file.modified().ok()?).ok())
        .max()
}

#[cfg(test)]
mod tests {
    use super::{super::authority, *};

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn a_certificate_that_is_not_valid_yet_and_files_from_the_future_are_reported() {
        let data = tempfile::tempdir().unwrap();
        let created: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let authority = authority::create(created, DAY * 3650).unwrap();
        fs::create_dir(data.path().join("identity")).unwrap();
        let path = data.path().join("identity/ca.pem");
        fs::write(&path, authority.to_pem()).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(created.into()).unwrap();
        assert_eq!(clock_problems(data.path(), created), [""; 0]);
        assert_eq!(
            clock_problems(data.path(), created - Duration::from_mins(1)),
            [""; 0]
        );
        let hour = clock_problems(data.path(), created - Duration::from_mins(30));
        assert!(
            matches!(hour.as_slice(), [text] if text.contains("jumped back")),
            "{hour:?}"
        );
        let day = clock_problems(data.path(), created - DAY);
        assert_eq!(day.len(), 2);
        assert!(
            day[0].contains("is valid from 2026-05-31T23:00:00Z on"),
            "{day:?}"
        );
    }
}
