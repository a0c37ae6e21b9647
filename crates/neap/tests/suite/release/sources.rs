//! What the sources of payloads say, and content that is kept on the machine. The clones are made here with `git`, so that
//! no network is asked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use neap_emulators::registry::Access;
use neap_kit::{client::Client, clock::Clock};
use neap_release::{
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
    },
    payload_image::{
        labels::{COMMIT_ID, OPERATOR, SOURCE_LOCATION},
        sample::{self, SampleImage},
    },
};
use serde_json::{Value, json};

use super::{neap, registries::TestRegistry, succeed};

const SOURCE: &str = "https://github.com/example/cli";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Dev", "-c", "user.email=dev@example.com"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A clone with two commits, the second a merge; their ids.
fn cloned(sources: &Path) -> [String; 2] {
    let clone = sources.join("github.com/example/cli");
    fs::create_dir_all(&clone).unwrap();
    git(&clone, &["init", "--quiet", "--bare"]);
    let tree = git(&clone, &["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let first = git(&clone, &["commit-tree", &tree, "-m", "first"]);
    let branch = git(
        &clone,
        &["commit-tree", &tree, "-p", &first, "-m", "change"],
    );
    let message = "Merge pull request #7 from dev/branch\n\nOCPBUGS-12: use less memory";
    let merge = [
        "commit-tree",
        &tree,
        "-p",
        &first,
        "-p",
        &branch,
        "-m",
        message,
    ];
    let second = git(&clone, &merge);
    git(&clone, &["update-ref", "refs/heads/main", &second]);
    [first, second]
}

/// A payload whose only component is built from this commit.
async fn payload(home: &Path, registry: &str, tag: &str, commit: &str) -> String {
    let labels = [
        (OPERATOR, "true"),
        (SOURCE_LOCATION, SOURCE),
        (COMMIT_ID, commit),
    ];
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cli}\n";
    let image = SampleImage::new("cli", &labels, &[("manifests/cli.yaml", manifest)]);
    let http = Client::builder("test", Clock::system()).build().unwrap();
    let client = RegistryClient::new(http, Credentials::none(), Options::default());
    let target = format!("{registry}/ocp/cli:{tag}");
    let built = image.build().unwrap();
    sample::push(&client, &built, &target.parse().unwrap())
        .await
        .unwrap();
    let (component, made) = (
        format!("cli={target}"),
        format!("{registry}/made/release:{tag}"),
    );
    let base = ["--to-image-base-tag", ""];
    let args = ["assemble", "--name", tag, "--to-image", &made, &component];
    succeed(home, &[&args[..], &base].concat());
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changelog_comes_from_a_folder_of_clones() {
    let registry = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let (home, sources) = (home.path(), home.path().join("sources"));
    let [first, second] = cloned(&sources);
    let sources = sources.display().to_string();
    let from = payload(home, &registry.address, "4.99.0-ci.1", &first).await;
    let to = payload(home, &registry.address, "4.99.0-ci.2", &second).await;

    let text = succeed(home, &["info", &from, &to, "--changelog", &sources]);
    let line = format!(
        "* [OCPBUGS-12](https://issues.redhat.com/browse/OCPBUGS-12): use less memory [#7]({SOURCE}/pull/7)"
    );
    assert!(
        text.starts_with("# 4.99.0-ci.2\n") && text.contains(&line),
        "{text}"
    );
    let document = succeed(
        home,
        &["info", &from, &to, "--changelog", &sources, "-o", "json"],
    );
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        document["updatedImages"][0]["commits"][0]["commitID"],
        *second
    );
    let bugs = |args: &[&str]| {
        let all = ["info", &from, &to, "--bugs", &sources, "--skip-bug-check"];
        succeed(home, &[&all[..], args].concat())
    };
    assert_eq!(bugs(&["-o", "name"]), "OCPBUGS-12\n");
    let document: Value = serde_json::from_str(&bugs(&["-o", "json"])).unwrap();
    let bug =
        json!([{"id": "OCPBUGS-12", "status": "", "priority": "", "summary": "", "source": 1}]);
    assert_eq!(document, bug);
    let nothing = ["info", &to, &to, "--bugs", &sources, "--skip-bug-check"];
    assert_eq!(
        neap(home, &nothing).status.code(),
        Some(2),
        "the payloads are one"
    );
    let alone = neap(home, &["info", &to, "--changelog", &sources]);
    assert_eq!(alone.status.code(), Some(2));

    let verified = succeed(home, &["extract", &to, "--git", &sources, "-o", "commit"]);
    assert!(verified.contains(&second), "{verified}");
    succeed(home, &["extract", &to, "--git", &sources]);
    let folder = PathBuf::from(&sources).join(format!("github.com/example/cli@{second}"));
    assert_eq!(git(&folder, &["rev-parse", "HEAD"]), second);
    // What cannot be read is named after everything else.
    let clone = PathBuf::from(&sources).join("github.com/example/cli");
    fs::remove_dir_all(&clone).unwrap();
    fs::create_dir_all(&clone).unwrap();
    let left_out = neap(home, &["info", &from, &to, "--changelog", &sources]);
    assert_eq!(left_out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&left_out.stdout).contains("## Changes from"));
    let message = String::from_utf8_lossy(&left_out.stderr).into_owned();
    assert!(
        message.contains(&format!("Could not load commits for {SOURCE}")),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_by_digest_is_not_asked_for_again_if_a_folder_is_named() {
    let registry = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let (home, kept) = (home.path(), home.path().join("kept"));
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let source = payload(home, &registry.address, "4.99.0-ci.1", commit).await;
    let kept = kept.display().to_string();
    let calls = registry.ours.as_ref().unwrap().calls();
    let assembled = |tag: &str, more: &[&str]| {
        calls.clear();
        let target = format!("{}/made/again:{tag}", registry.address);
        let args = ["assemble", "--from-release", &source, "--to-image", &target];
        let printed = succeed(home, &[&args[..], more].concat());
        let lines = calls.lines();
        let read = lines
            .iter()
            .filter(|line| line.starts_with("GET ") && line.contains("sha256:"));
        (printed, read.count())
    };
    let (plain, reads) = assembled("plain", &["--to-image-base-tag", ""]);
    let cache = ["--to-image-base-tag", "", "--cache", &kept];
    assert_eq!(assembled("first", &cache), (plain.clone(), reads));
    assert_eq!(assembled("second", &cache), (plain.clone(), 0));
    assert_eq!(
        assembled("plain-again", &cache[..2]),
        (plain, reads),
        "only if it is asked for"
    );
    assert!(reads >= 3, "{reads}");
}
