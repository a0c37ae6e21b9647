//! `cargo xtask idle`: the operator and both installs of `idle` on a real kube-apiserver, with one range
//! of service addresses and with one for each family.

use std::process::Command;

use anyhow::Result;

use crate::{process, tools};

/// Addresses of services: of one family, and of both.
const RANGES: [&str; 2] = ["10.0.0.0/24", "10.0.0.0/24,fd00:10::/112"];

/// Runs it on both; false if something fails.
pub(crate) fn run() -> Result<bool> {
    let reference = tools::reference()?;
    let (kubectl, helm) = (tools::kubectl()?, tools::helm()?);
    println!("building the tests and what starts the server");
    let build = ["build", "--locked", "--quiet", "--package", "neap-load"];
    process::run(process::cargo().args(build))?;
    let test = [
        "test",
        "--locked",
        "--package",
        "neap-idle",
        "--test",
        "reference",
        "--features",
        "reference",
    ];
    process::run(process::cargo().args(test).arg("--no-run"))?;
    let mut holds = true;
    for range in RANGES {
        println!("service addresses {range}");
        let mut beside = Command::new(process::root().join("target/debug/neap-load"));
        beside
            .arg("beside")
            .arg("--reference")
            .arg(&reference)
            .args(["--service-addresses", range])
            .args(["--told-in", "NEAP_IDLE_SERVER", "--"])
            .arg(process::cargo().get_program())
            .args(test)
            .env("NEAP_KUBECTL", &kubectl.path)
            .env("NEAP_HELM", &helm.path)
            .current_dir(process::root());
        if !range.contains(',') {
            beside.args(["--", "--skip", "dual_stack"]);
        }
        let held = beside.status()?.success();
        println!(
            " {} service addresses {range}",
            if held { '✓' } else { '✗' }
        );
        holds = holds && held;
    }
    Ok(holds)
}
