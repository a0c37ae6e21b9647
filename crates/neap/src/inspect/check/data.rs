//! Checks of the data folder.

use std::{fs::File, io, path::Path};

use neap_kit::audit::{AnchorOptions, audit_exists};
use rustix::fs::statvfs;

use crate::{
    exit::chain,
    inspect::{
        audit::{self, AuditVerification},
        cluster::Cluster,
    },
};
use neap_kit::area::Finding;

/// Free space below which the store may soon refuse writes.
const MIN_FREE_BYTES: u64 = 256 << 20;

/// Checks the folder, and compares its audit log with the anchor of `cluster`.
pub(super) async fn check(folder: &Path, cluster: Option<&Cluster>) -> Vec<Finding> {
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

fn space(free: u64) -> Finding {
    let megabytes = free >> 20;
    if free < MIN_FREE_BYTES {
        let hint = "free some space: on a full disk all writes are refused";
        return Finding::failed("space", format!("{megabytes} MB free"), hint);
    }
    Finding::ok("space", format!("{megabytes} MB free"))
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
        let missing = check(&parent.path().join("none"), None).await;
        assert_eq!(missing[0].level, Level::Failed);
        let levels = |all: &[Finding]| {
            all.iter()
                .map(|one| (one.name.clone(), one.level))
                .collect::<Vec<_>>()
        };
        let clean = check(parent.path(), None).await;
        assert!(
            !levels(&clean).contains(&("folder".into(), Level::Failed)),
            "{clean:?}"
        );
        std::fs::write(parent.path().join("audit.jsonl"), "noise\n").unwrap();
        let noise = check(parent.path(), None).await;
        assert!(
            levels(&noise).contains(&("audit".into(), Level::Failed)),
            "{noise:?}"
        );
    }

    #[test]
    fn little_space_fails() {
        assert_eq!(space(1 << 20).level, Level::Failed);
        assert_eq!(space(1 << 40).level, Level::Ok);
    }
}
