//! `cargo xtask differential`: ours held against a real kube-apiserver on the same requests.

use std::process::Command;

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
    println!("building neap");
    let built = Built::new()?;
    println!("scenarios");
    let mut command = built.load();
    command
        .arg("beside")
        .arg("--reference")
        .arg(&reference)
        .args(["--controllers", &CONTROLLERS.join(",")])
        .args(["--told-in", "NEAP_SCENARIO_KUBECONFIG", "--"])
        .arg(process::cargo().get_program())
        .args(["test", "--locked", "--package", "neap-pocket"])
        .args(["--test", "scenarios", "--", "--test-threads", "4"])
        .current_dir(process::root());
    let scenarios = command.status()?.success();
    println!("random requests");
    let build = ["build", "--release", "--locked", "--quiet", "--package", "neap-differential"];
    process::run(process::cargo().args(build))?;
    let mut command = Command::new(process::root().join("target/release/neap-differential"));
    command.arg("--neap").arg(&built.neap);
    command.arg("--program").arg(&reference);
    command.args(["--seeds", &seeds.to_string()]);
    Ok(command.status()?.success() && scenarios)
}
