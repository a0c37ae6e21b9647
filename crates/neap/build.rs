//! Passes the commit to the build as `NEAP_COMMIT`, if the sources are a Git checkout.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // logs/HEAD changes with every commit and checkout; HEAD itself changes only with the branch.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=NEAP_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
