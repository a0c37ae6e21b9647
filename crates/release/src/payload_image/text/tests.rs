use super::*;
use crate::payload_image::{info::info, labels::VERSIONS};

#[test]
fn a_payload_is_described() {
    let source: &[(&str, &str)] = &[
        (SOURCE_LOCATION, "https://github.com/ex/cli.git"),
        (COMMIT_ID, "aaa1"),
        (VERSIONS, "kubectl=1.35.2"),
    ];
    let payload = crate::payload_image::info::tests::payload(
        "4.99.0-ci.7",
        &[
            ("cli", "c1", source),
            ("machine-config-operator", "c2", &[]),
        ],
    );
    let info = info(&payload, None);
    let text = describe(&payload, &info, Columns::Digest);
    let digest = &payload.manifest.digest;
    let expected = format!(
        "Name:       4.99.0-ci.7
Digest:     {digest}
Created:    2026-01-02T03:05:10Z
OS/Arch:    linux/amd64
Manifests:  0

Pull From: reg.example/ocp/release@{digest}

Release Metadata:
  Version:   4.99.0-ci.7
  Upgrades:  4.98.7, 4.98.10

Component Versions:
  kubectl  1.35.2

Images:
  NAME                     DIGEST
  cli                      {}
  machine-config-operator  {}
",
        crate::oci::digest::sha256(b"c1"),
        crate::oci::digest::sha256(b"c2"),
    );
    assert_eq!(text, expected);
    let urls = describe(&payload, &info, Columns::CommitUrl);
    assert!(
        urls.contains("cli                      https://github.com/ex/cli/commit/aaa1\n"),
        "{urls}"
    );
}

#[test]
fn sources_on_other_hosts_are_shown_as_they_are() {
    assert_eq!(
        commit_url("git@github.com:ex/cli.git", "a"),
        "https://github.com/ex/cli/commit/a"
    );
    assert_eq!(
        commit_url("https://git.example/ex/cli", "a"),
        "https://git.example/ex/cli a"
    );
    assert_eq!(
        commit_url("https://github.com/ex/cli", ""),
        "https://github.com/ex/cli"
    );
}

#[test]
fn a_name_with_a_newline_does_not_look_like_the_next_row() {
    let rows = [
        row(&["cli\nDigest:", "sha256:1"]),
        row(&["etcd", "sha256:2"]),
    ];
    let text = aligned(&rows, "  ");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("  cli\\nDigest:  sha256:1"), "{text}");
}
