//! The data folder.

use std::{fs::File, io, path::Path};

use neap_kit::audit::{AnchorOptions, is_there};
use rustix::fs::statvfs;

use super::Finding;
use crate::{
    ask::{
        audit::{self, Verified},
        cluster::Cluster,
    },
    exit::chain,
};

/// With less, the store may soon refuse writes.
const ENOUGH_SPACE: u64 = 256 << 20;

/// Looks at the folder, and compares its audit with the anchor of `cluster`.
pub(super) async fn check(folder: &Path, cluster: Option<&Cluster>) -> Vec<Finding> {
    if !folder.is_dir() {
        let says = format!("{} is not there", folder.display());
        let hint =
            "it is made by `neap up --data`; see whether the path is spelled as it should be";
        return vec![Finding::failed("folder", says, hint)];
    }
    let mut findings = vec![
        writable(folder, tempfile::tempfile_in(folder)),
        in_use(folder),
    ];
    if let Ok(disk) = statvfs(folder) {
        findings.push(space(disk.f_bavail.saturating_mul(disk.f_frsize)));
    }
    let options = AnchorOptions::of(folder);
    if is_there(&options.path) {
        let verified = audit::compare(&options, cluster).await;
        findings.push(chained(verified));
    }
    findings
}

fn writable(folder: &Path, tried: io::Result<File>) -> Finding {
    match tried {
        Ok(_) => Finding::ok("folder", format!("{} can be written", folder.display())),
        Err(error) => Finding::failed(
            "folder",
            format!("{} cannot be written: {error}", folder.display()),
            "see that it belongs to you, and that the disk is neither full nor read-only",
        ),
    }
}

/// Whether the folder has a kubeconfig of its own, and no neap works with it.
pub(super) fn is_idle(folder: &Path) -> bool {
    folder.join("kubeconfig").exists() && !is_held(folder)
}

/// Only a look: a lock that is taken here would keep a `neap up` away for that moment.
fn is_held(folder: &Path) -> bool {
    let lock = File::open(folder.join("neap.lock"));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn in_use(folder: &Path) -> Finding {
    let says = if is_held(folder) {
        "a neap works with it"
    } else {
        "no neap works with it"
    };
    Finding::ok("in use", says)
}

fn space(free: u64) -> Finding {
    let megabytes = free >> 20;
    if free < ENOUGH_SPACE {
        let hint = "make room: without it writes are refused until there is some";
        return Finding::failed("space", format!("{megabytes} MB are left"), hint);
    }
    Finding::ok("space", format!("{megabytes} MB are left"))
}

fn chained(verified: Result<Verified, neap_kit::audit::Error>) -> Finding {
    match verified {
        Ok(verified) => Finding::ok("audit", verified.to_string()),
        Err(error) => {
            let hint = "keep the file as evidence: neap audit verify says more, and neap explain NT-KIT-010 what to do";
            Finding::failed("audit", chain(&error), hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Level, *};

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
