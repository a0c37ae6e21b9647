//! Builds the controller of Prow from the Go module proxy, once.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The newest version that builds from the module proxy alone, of 2024-06-19.
const MODULE: &str = "sigs.k8s.io/prow@v0.0.0-20240619181241-cfb8754e0459";
const PROGRAM: &str = "prow-controller-manager";
/// The definition of ProwJobs in the module.
const DEFINITION: &str = "config/prow/cluster/prowjob-crd/prowjob_customresourcedefinition.yaml";

/// What was built, and the definition of ProwJobs.
pub(super) struct Prow {
    pub(super) program: PathBuf,
    pub(super) definition: PathBuf,
}

/// The program, built if it is missing; that takes minutes.
pub(super) fn prow() -> Result<Prow> {
    let folder = process::root().join("target/tools/prow");
    let prow = Prow {
        program: folder.join("bin").join(PROGRAM),
        definition: folder.join("bin/prowjobs.yaml"),
    };
    if !prow.program.exists() || !prow.definition.exists() {
        println!("   building Prow from the Go module proxy; this takes minutes and happens once");
        build(&folder, &prow)?;
    }
    Ok(prow)
}

fn build(folder: &std::path::Path, prow: &Prow) -> Result<()> {
    let source = folder.join("source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(&source)?;
    fs::create_dir_all(folder.join("bin"))?;
    fs::write(source.join("go.mod"), "module prow\n\ngo 1.24\n")?;
    let text = process::output(go(&source).args(["mod", "download", "-json", MODULE]))?;
    let answer: Value = serde_json::from_str(&text)?;
    let module = answer["Dir"]
        .as_str()
        .context("go does not say where the module is")?;
    // The folder of the module cannot be written, and the build notes sums in it.
    let programs = source.join("programs");
    process::run(
        Command::new("cp")
            .args(["-r", "--no-preserve=mode", module])
            .arg(&programs),
    )?;
    fs::copy(programs.join(DEFINITION), &prow.definition)?;
    let mut command = go(&programs);
    command.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]);
    command.arg("-o").arg(&prow.program);
    process::run(command.arg(format!("./cmd/{PROGRAM}")))?;
    fs::remove_dir_all(&source).context("the sources cannot be removed")
}

fn go(folder: &std::path::Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).env("CGO_ENABLED", "0");
    command
}
