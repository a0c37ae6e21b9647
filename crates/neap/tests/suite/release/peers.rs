//! skopeo, crane and umoci read what `neap release assemble` pushed.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::Path,
    process::Command,
};

use neap_emulators::registry::Access;
use serde_json::Value;

use super::{assemble, registries::TestRegistry, succeed};
use crate::skip::skip;

/// The program that a variable names; without it the test is listed as skipped.
fn program(test: &str, variable: &str) -> Option<OsString> {
    let program = std::env::var_os(variable);
    if program.is_none() {
        skip(
            test,
            &format!("{variable} is not set; run cargo xtask test"),
        );
    }
    program
}

fn run(program: &OsStr, home: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).env("HOME", home).output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The digest in the line that `assemble` prints.
fn digest(line: &str) -> String {
    line.split(' ').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn skopeo_reads_a_payload_and_copies_it_both_ways() {
    let test = "skopeo_reads_a_payload_and_copies_it_both_ways";
    let (Some(skopeo), Some(debian)) = (
        program(test, "NEAP_SKOPEO"),
        program(test, "NEAP_DOCKER_REGISTRY"),
    ) else {
        return;
    };
    let ours = TestRegistry::ours(Access::Open).await;
    let debian = TestRegistry::debian(&debian).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let skopeo = |args: &[&str]| {
        let mut all = vec!["--insecure-policy"];
        all.extend_from_slice(args);
        run(&skopeo, home, &all)
    };
    for (one, other) in [(&ours, &debian), (&debian, &ours)] {
        let made = digest(&assemble(home, &one.address, "v1"));
        let here = format!("docker://{}/made/release:v1", one.address);
        let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &here]);
        assert!(
            raw.contains("\"schemaVersion\":") || raw.contains("\"schemaVersion\": "),
            "{raw}"
        );
        let there = format!("docker://{}/copied/release:v1", other.address);
        let insecure = ["--src-tls-verify=false", "--dest-tls-verify=false"];
        let copy = [
            "copy",
            "--all",
            "--preserve-digests",
            insecure[0],
            insecure[1],
        ];
        skopeo(&[&copy[..], &[&here, &there]].concat());
        let copied = format!("{}/copied/release:v1", other.address);
        let info = succeed(home, &["info", "-o", "json", &copied]);
        let info: Value = serde_json::from_str(&info).unwrap();
        assert_eq!(info["digest"], made.as_str());
        assert_eq!(info["metadata"]["version"], "4.99.0-ci.7");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn umoci_unpacks_a_payload() {
    let test = "umoci_unpacks_a_payload";
    let (Some(skopeo), Some(umoci)) = (program(test, "NEAP_SKOPEO"), program(test, "NEAP_UMOCI"))
    else {
        return;
    };
    let ours = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assemble(home, &ours.address, "v1");
    let layout = home.join("layout");
    let here = format!("docker://{}/made/release:v1", ours.address);
    let target = format!("oci:{}:v1", layout.display());
    let copy = ["--insecure-policy", "copy", "--src-tls-verify=false"];
    run(&skopeo, home, &[&copy[..], &[&here, &target]].concat());
    let (image, bundle) = (format!("{}:v1", layout.display()), home.join("bundle"));
    let folder = bundle.display().to_string();
    run(
        &umoci,
        home,
        &["unpack", "--rootless", "--image", &image, &folder],
    );
    let files = bundle.join("rootfs/release-manifests");
    let references = fs::read(files.join("image-references")).unwrap();
    let references: Value = serde_json::from_slice(&references).unwrap();
    assert_eq!(references["metadata"]["name"], "4.99.0-ci.7");
    assert_eq!(references["spec"]["tags"].as_array().unwrap().len(), 4);
    let manifest = fs::read_to_string(files.join("0000_50_dns-operator_01_config.yaml")).unwrap();
    assert!(manifest.contains("version: 4.99.0-ci.7"), "{manifest}");
    // The payload runs as the operator that it is based on.
    assert!(bundle.join("rootfs/usr/bin/README").is_file());
    let config = fs::read_to_string(bundle.join("config.json")).unwrap();
    assert!(
        config.contains("/usr/bin/cluster-version-operator"),
        "{config}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn crane_reads_a_payload_and_copies_it_both_ways() {
    let test = "crane_reads_a_payload_and_copies_it_both_ways";
    let (Some(crane), Some(debian)) = (
        program(test, "NEAP_CRANE"),
        program(test, "NEAP_DOCKER_REGISTRY"),
    ) else {
        return;
    };
    let ours = TestRegistry::ours(Access::Open).await;
    let debian = TestRegistry::debian(&debian).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let crane = |args: &[&str]| run(&crane, home, args);
    for (one, other) in [(&ours, &debian), (&debian, &ours)] {
        let made = digest(&assemble(home, &one.address, "v1"));
        let here = format!("{}/made/release:v1", one.address);
        assert_eq!(crane(&["digest", &here]), made);
        crane(&["validate", "--remote", &here]);
        let there = format!("{}/copied/release:v1", other.address);
        crane(&["copy", &here, &there]);
        let one_image = succeed(home, &["info", "--image-for", "cli", &there]);
        assert!(one_image.contains("/sample/cli@sha256:"), "{one_image}");
        let files = succeed(home, &["extract", &there, "--file", "release-metadata"]);
        assert!(files.contains("cincinnati-metadata-v0"), "{files}");
    }
}
