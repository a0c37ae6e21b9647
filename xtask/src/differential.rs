//! `cargo xtask differential`: ours held against a real kube-apiserver on the same requests.

use std::{fs, path::Path, process::Command};

use anyhow::Result;

use crate::{load::Built, process, tools};

/// What the real control plane does by controllers and ours by itself.
const CONTROLLERS: [&str; 7] = [
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
];

/// Runs both parts; false if something differs.
pub(crate) fn run(seeds: u64) -> Result<bool> {
    let reference = tools::reference()?;
    println!("building neap and the programs that compare");
    let built = Built::new()?;
    let release = ["build", "--release", "--locked", "--quiet"];
    process::run(
        process::cargo()
            .args(release)
            .args(["--package", "neap-api-conformance"]),
    )?;
    println!("scenario files");
    let scenarios = scenarios(&built, &reference)?;
    println!("random requests, {seeds} seeds");
    let random = random(&built, &reference, seeds)?;
    for (part, holds) in [("scenario files", scenarios), ("random requests", random)] {
        println!(" {} {part}", if holds { '✓' } else { '✗' });
    }
    Ok(scenarios && random)
}

/// `cargo xtask controllers`; false if something differs that may not.
pub(crate) fn controllers(only: &str) -> Result<bool> {
    let reference = tools::reference()?;
    println!("building world's controllers and what compares");
    let build = [
        "build",
        "--locked",
        "--quiet",
        "--package",
        "neap-controller-conformance",
    ];
    process::run(process::cargo().args(build))?;
    let mut parity = Command::new(process::root().join("target/debug/neap-controller-conformance"));
    parity
        .arg("--reference")
        .arg(reference)
        .args(["--only", only]);
    Ok(parity.status()?.success())
}

/// Plays every scenario file on both servers, and compares all that was answered.
fn scenarios(built: &Built, reference: &Path) -> Result<bool> {
    let folder = process::root().join("target/recordings");
    let (theirs, ours) = (folder.join("reference"), folder.join("pocket"));
    for folder in [&theirs, &ours] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
    }
    let test = [
        "test",
        "--locked",
        "--quiet",
        "--package",
        "neap-pocket",
        "--test",
        "scenarios",
    ];
    let mut pocket = process::cargo();
    let pocket = pocket
        .args(test)
        .env("NEAP_SCENARIO_RECORD", &ours)
        .status()?;
    let mut beside = built.load();
    let beside = beside
        .arg("beside")
        .arg("--reference")
        .arg(reference)
        .args(["--controllers", &CONTROLLERS.join(",")])
        .args(["--told-in", "NEAP_SCENARIO_KUBECONFIG", "--"])
        .arg(process::cargo().get_program())
        .args(test)
        .args(["--", "--test-threads", "4"])
        .env("NEAP_SCENARIO_RECORD", &theirs)
        .current_dir(process::root())
        .status()?;
    let compared = Command::new(process::root().join("target/release/neap-recordings"))
        .arg("--reference")
        .arg(&theirs)
        .arg("--pocket")
        .arg(&ours)
        .status()?;
    Ok(pocket.success() && beside.success() && compared.success())
}

/// Sends the same random requests to both.
fn random(built: &Built, reference: &Path, seeds: u64) -> Result<bool> {
    let mut beside = built.load();
    beside
        .arg("beside")
        .arg("--reference")
        .arg(reference)
        .args(["--controllers", &CONTROLLERS.join(","), "--"])
        .arg(process::root().join("target/release/neap-api-conformance"))
        .arg("--neap")
        .arg(&built.neap)
        .args(["--seeds", &seeds.to_string()]);
    Ok(beside.status()?.success())
}
