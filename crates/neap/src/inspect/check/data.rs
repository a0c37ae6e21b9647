//! Checks of the data folder.

use std::{fs::File, io, path::Path};

use neap_kit::{
    audit::{AnchorOptions, audit_exists},
    clock::Clock,
};
use neap_pocket::store::journal::Journal;
use rustix::fs::statvfs;

use crate::{
    exit::chain,
    inspect::{
        audit::{self, AuditVerification},
        cluster::Cluster,
    },
    printable::shell_path,
    up::clock_problems,
};
use neap_kit::area::Finding;

/// Free space below which the store may soon refuse writes.
const MIN_FREE_BYTES: u64 = 256 << 20;

/// Checks the folder, and compares its audit log with the anchor of `cluster`, or says why that cluster is not asked.
pub(super) async fn check(folder: &Path, cluster: Result<&Cluster, &str>) -> Vec<Finding> {
    if !folder.is_dir() {
        let message = format!("{} does not exist", folder.display());
        let hint = "`neap up --data` creates it; check the spelling of the path";
        return vec![Finding::failed("folder", message, hint)];
    }
    let mut findings = vec![
        writable(folder, tempfile::tempfile_in(folder)),
        in_use(folder),
    ];
    if let Ok(disk) = statvfs(folder) {
        findings.push(space(disk.f_bavail.saturating_mul(disk.f_frsize)));
    }
    findings.push(clock(folder));
    findings.extend(store(folder));
    let options = AnchorOptions::for_data_folder(folder);
    if audit_exists(&options.path) {
        let verified = audit::verify_against_anchor(&options, cluster).await;
        findings.push(audit_finding(verified));
    }
    findings
}

fn writable(folder: &Path, tried: io::Result<File>) -> Finding {
    match tried {
        Ok(_) => Finding::ok("folder", format!("{} is writable", folder.display())),
        Err(error) => Finding::failed(
            "folder",
            format!("{} is not writable: {error}", folder.display()),
            "check that it belongs to you, and that the disk is neither full nor read-only",
        ),
    }
}

/// Whether the folder has a kubeconfig but no `neap up` uses it.
pub(super) fn has_no_server(folder: &Path) -> bool {
    folder.join("kubeconfig").exists() && !is_locked(folder)
}

/// What to do about a folder that no server uses.
pub(super) fn start_hint(folder: &Path) -> String {
    format!("start one with neap up --data {}", shell_path(folder))
}

/// Tries a shared lock only: an exclusive one could make a `neap up` that starts meanwhile fail.
fn is_locked(folder: &Path) -> bool {
    let lock = File::open(folder.join("neap.lock"));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn in_use(folder: &Path) -> Finding {
    let message = if is_locked(folder) {
        "a neap up uses it"
    } else {
        "no neap up uses it"
    };
    Finding::ok("in use", message)
}

/// Compares the clock of this machine with the folder's certificates and files.
fn clock(folder: &Path) -> Finding {
    let problems = clock_problems(folder, Clock::system().now());
    if problems.is_empty() {
        return Finding::ok(
            "clock",
            "the certificates are valid, and no file is from the future",
        );
    }
    Finding::failed(
        "clock",
        problems.join("; "),
        "set the clock of this machine; if it is right, and was ahead before, remove the folder identity in the data folder to create new credentials",
    )
}

fn space(free: u64) -> Finding {
    let megabytes = free >> 20;
    if free < MIN_FREE_BYTES {
        let hint = "free some space: on a full disk all writes are refused";
        return Finding::failed("space", format!("{megabytes} MB free"), hint);
    }
    Finding::ok("space", format!("{megabytes} MB free"))
}

/// Reads the store as a start would. None if a server uses it, which has read it itself.
fn store(folder: &Path) -> Option<Finding> {
    if is_locked(folder) {
        return None;
    }
    match Journal::verify(&folder.join("store")) {
        Ok(()) => Some(Finding::ok("store", "neap up can read it")),
        // A server that has started meanwhile changes the files while they are read.
        Err(_) if is_locked(folder) => None,
        Err(error) => Some(Finding::failed(
            "store",
            format!("neap up would refuse it: {} (NT-UP-0014)", chain(&error)),
            "follow the advice above, or use another --data folder; neap explain NT-UP-0014 says more",
        )),
    }
}

fn audit_finding(verified: Result<AuditVerification, neap_kit::audit::Error>) -> Finding {
    match verified {
        Ok(verified) => Finding::ok("audit", verified.to_string()),
        Err(error) => {
            let hint = "keep the file as evidence; neap audit verify shows details, neap explain NT-KIT-010 the remedy";
            Finding::failed("audit", chain(&error), hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use neap_kit::area::Level;

    use super::*;

    #[tokio::test]
    async fn a_folder_that_is_missing_or_tampered_with_fails() {
        let parent = tempfile::tempdir().unwrap();
        let missing = check(&parent.path().join("none"), Err(audit::NOT_CONFIGURED)).await;
        assert_eq!(missing[0].level, Level::Failed);
        let levels = |all: &[Finding]| {
            all.iter()
                .map(|one| (one.name.clone(), one.level))
                .collect::<Vec<_>>()
        };
        let clean = check(parent.path(), Err(audit::NOT_CONFIGURED)).await;
        assert!(
            !levels(&clean).contains(&("folder".into(), Level::Failed)),
            "{clean:?}"
        );
        std::fs::write(parent.path().join("audit.jsonl"), "noise\n").unwrap();
        let noise = check(parent.path(), Err(audit::NOT_CONFIGURED)).await;
        assert!(
            levels(&noise).contains(&("audit".into(), Level::Failed)),
            "{noise:?}"
        );
    }

    #[test]
    fn a_store_that_a_start_would_refuse_fails_unless_a_server_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let level = || store(folder.path()).map(|finding| finding.level);
        assert_eq!(level(), Some(Level::Ok), "a folder that was never used");
        let store_folder = folder.path().join("store");
        std::fs::create_dir(&store_folder).unwrap();
        std::fs::write(store_folder.join("FORMAT"), "noise").unwrap();
        let found = store(folder.path()).unwrap();
        assert_eq!(found.level, Level::Failed);
        let part = "FORMAT does not name a data format; check that this is a data folder of neap";
        assert!(found.message.contains(part), "{}", found.message);
        let lock = File::create(folder.path().join("neap.lock")).unwrap();
        lock.lock().unwrap();
        assert_eq!(level(), None);
    }

    #[test]
    fn the_hint_names_the_folder_as_a_shell_reads_it() {
        let hint = start_hint(Path::new("/my data"));
        assert_eq!(hint, "start one with neap up --data '/my data'");
    }

    #[test]
    fn a_file_from_the_future_fails() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(clock(folder.path()).level, Level::Ok);
        let file = File::create(folder.path().join("kubeconfig")).unwrap();
        let ahead = Clock::system().now() + std::time::Duration::from_hours(2);
        file.set_modified(ahead.into()).unwrap();
        assert_eq!(clock(folder.path()).level, Level::Failed);
    }

    #[test]
    fn little_space_fails() {
        assert_eq!(space(1 << 20).level, Level::Failed);
        assert_eq!(space(1 << 40).level, Level::Ok);
    }
}
