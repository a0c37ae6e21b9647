//! `cargo xtask idle`: the operator and both installs of `idle` on a real control plane, with one range
//! of service addresses and with one for each family.

use std::process::Command;

use anyhow::Result;

use crate::{process, stopwatch::Stopwatch, tools};

/// Addresses of services: of one family, and of both.
const RANGES: [&str; 2] = ["10.0.0.0/24", "10.0.0.0/24,fd00:10::/112"];
/// What a cluster does about workloads, services and rights; scheduler and kubelets are played.
const CONTROLLERS: [&str; 8] = [
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "endpointslice-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "namespace-controller",
    "garbage-collector-controller",
];
/// Those who are started beside the tests.
const PROGRAMS: [&str; 8] = [
    "build",
    "--locked",
    "--quiet",
    "--workspace",
    "--bin",
    "neap",
    "--bin",
    "neap-load",
];
/// Of the whole workspace: for one package alone everything below it would be built anew.
const TEST: [&str; 7] = [
    "test",
    "--locked",
    "--workspace",
    "--features",
    "neap-idle/reference",
    "--test",
    "real_server",
];

/// Runs it on both; false if something fails.
pub(crate) fn run() -> Result<bool> {
    let reference = tools::reference()?;
    let (kubectl, helm) = (tools::kubectl()?, tools::helm()?);
    println!("building neap, the tests and what starts the server");
    process::run(process::cargo().args(PROGRAMS))?;
    process::run(process::cargo().args(TEST).arg("--no-run"))?;
    let built = process::root().join("target/debug");
    let mut holds = true;
    for range in RANGES {
        println!("service addresses {range}");
        let watch = Stopwatch::start();
        let mut beside = Command::new(built.join("neap-load"));
        beside
            .arg("beside")
            .arg("--reference")
            .arg(&reference)
            .args(["--service-addresses", range])
            .args(["--controllers", &CONTROLLERS.join(",")])
            .args(["--told-in", "NEAP_IDLE_SERVER", "--"])
            .arg(process::cargo().get_program())
            .args(TEST)
            // Operators look at all namespaces.
            .args(["--", "--test-threads", "1"])
            .env("NEAP_BIN", built.join("neap"))
            .env("NEAP_KUBECTL", &kubectl.path)
            .env("NEAP_HELM", &helm.path)
            .current_dir(process::root());
        if !range.contains(',') {
            beside.args(["--skip", "dual_stack"]);
        }
        let held = beside.status()?.success();
        let mark = if held { '✓' } else { '✗' };
        println!(" {mark} service addresses {range} in {watch}");
        holds = holds && held;
    }
    Ok(holds)
}
