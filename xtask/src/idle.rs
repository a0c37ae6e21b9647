//! `cargo xtask idle`: the operator and both installs of `idle` on a real control plane, with one range
//! of service addresses and with one for each family.

use anyhow::Result;

use crate::{load::Built, process, stopwatch::Stopwatch, tools};

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
/// Its own features would have everything built anew.
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
    let built = Built::new()?;
    process::run(process::cargo().args(TEST).arg("--no-run"))?;
    let mut holds = true;
    for range in RANGES {
        println!("service addresses {range}");
        let watch = Stopwatch::start();
        let mut beside = built.load();
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
            .env("NEAP_BIN", &built.neap)
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
