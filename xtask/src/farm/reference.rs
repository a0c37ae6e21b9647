//! `cargo xtask farm --reference`: the install and the operator on a real kube-apiserver.
//!
//! The manifests are applied as they are, and the operator runs with the rights of their account. No
//! controller runs there: `neap-load` makes the workloads ready, as for `cargo xtask bench farm`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{process, stopwatch::Stopwatch, tools};

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
/// Few farms: this is about the server and not about load.
const FARMS: &str = "3";
/// Installs the operator, and measures it with a kubeconfig of its account.
const SCRIPT: &str = r#"
set -eu
kubectl() { "$NEAP_KUBECTL" "$@"; }
export KUBECONFIG="$NEAP_FARM_SERVER"
kubectl apply --server-side -k deploy/farm/kustomize >&2
kubectl wait --for condition=established --timeout 60s -f deploy/farm/kustomize/crd.yaml >&2
# The server answers 429 for a moment after a definition is established.
for kind in storages schedulers workers frontends browsers; do
    until kubectl get "buildbarn$kind" --all-namespaces >/dev/null 2>&1; do sleep 1; done
done
token=$(kubectl -n buildbarn-system create token buildbarn-controller-manager)
kubectl config view --raw --flatten > "$OPERATOR"
export KUBECONFIG="$OPERATOR"
kubectl config set-credentials operator --token "$token" >&2
kubectl config set-context --current --user operator >&2
exec "$NEAP_LOAD" --neap "$NEAP_BIN" farm --farms "$FARMS" --operator-kubeconfig "$OPERATOR"
"#;

/// Runs it; false if the operator did not do what it should.
pub(super) fn run() -> Result<bool> {
    let (reference, kubectl) = (tools::reference()?, tools::kubectl()?);
    process::run(process::cargo().args(PROGRAMS))?;
    let built = process::root().join("target/debug");
    let folder = tempfile::tempdir()?;
    let watch = Stopwatch::start();
    let mut beside = Command::new(built.join("neap-load"));
    beside
        .arg("beside")
        .arg("--reference")
        .arg(&reference)
        .args(["--told-in", "NEAP_FARM_SERVER", "--", "sh", "-c", SCRIPT])
        .env("NEAP_BIN", built.join("neap"))
        .env("NEAP_LOAD", built.join("neap-load"))
        .env("NEAP_KUBECTL", &kubectl.path)
        .env("OPERATOR", folder.path().join("operator.kubeconfig"))
        .env("FARMS", FARMS)
        .current_dir(process::root());
    let text = process::output(&mut beside)?;
    let line = text.lines().find(|line| line.starts_with('{'));
    let figures: Value = serde_json::from_str(line.context("there are no figures")?)?;
    let figure = |name: &str| {
        let figure = figures[name].as_f64();
        figure.with_context(|| format!("no {name} was measured"))
    };
    ensure!(figure("pods")? > 0.0, "no workload had a pod");
    let (beyond, at_rest) = (figure("writes beyond")?, figure("writes at rest")?);
    let holds = beyond <= 0.0 && at_rest < 0.5;
    let mark = if holds { '✓' } else { '✗' };
    println!(
        " {mark} {FARMS} farms are ready on a kube-apiserver in {:.1} s, with {:.1} writes for {:.1} objects \
         of each; {at_rest} writes in a minute of rest ({watch})",
        figure("ready")?,
        figure("writes")?,
        figure("objects")?,
    );
    Ok(holds)
}
