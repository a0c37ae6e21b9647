//! The program that works a server hard from outside, built and run for crash runs, benches and
//! controllers.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;

use crate::{bench::Output, process, tools};

/// The release builds of the server and of what works it.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) neap: PathBuf,
    load: PathBuf,
}

impl Built {
    /// Builds both.
    pub(crate) fn new() -> Result<Self> {
        let build = ["build", "--release", "--locked", "--quiet"];
        let packages = ["--package", "neap", "--package", "neap-load"];
        process::run(process::cargo().args(build).args(packages))?;
        let release = process::root().join(Path::new("target/release"));
        Ok(Self {
            neap: release.join("neap"),
            load: release.join("neap-load"),
        })
    }

    /// The same with `neap` as it is shipped, which takes minutes longer: for figures beside programs
    /// that are measured as theirs are shipped.
    pub(crate) fn as_shipped() -> Result<Self> {
        let built = Self::new()?;
        let build = ["build", "--profile", "dist", "--locked", "--quiet"];
        process::run(process::cargo().args(build).args(["--package", "neap"]))?;
        Ok(Self {
            neap: process::root().join("target/dist/neap"),
            ..built
        })
    }

    /// What works the server, ready for its arguments.
    pub(crate) fn load(&self) -> Command {
        let mut command = Command::new(&self.load);
        command.arg("--neap").arg(&self.neap);
        command
    }
}

/// `cargo xtask crash`; false if a promise was broken.
pub(crate) fn crash(kills: usize, seed: Option<u64>) -> Result<bool> {
    let built = Built::new()?;
    let seed = seed.unwrap_or_else(any_seed).to_string();
    let kills = kills.to_string();
    let mut command = built.load();
    let status = command
        .args(["crash", "--kills", &kills, "--seed", &seed])
        .status()?;
    if !status.success() {
        println!("again with: cargo xtask crash --kills {kills} --seed {seed}");
    }
    Ok(status.success())
}

/// `cargo xtask leaders`; false if a promise was broken or a takeover took too long.
pub(crate) fn leaders(stops: usize, takeovers: usize, seed: Option<u64>) -> Result<bool> {
    let built = Built::new()?;
    let seed = seed.unwrap_or_else(any_seed).to_string();
    let (stops, takeovers) = (stops.to_string(), takeovers.to_string());
    let mut command = built.load();
    let status = command
        .args(["leaders", "--stops", &stops, "--takeovers", &takeovers])
        .args(["--seed", &seed])
        .status()?;
    if !status.success() {
        println!(
            "again with: cargo xtask leaders --stops {stops} --takeovers {takeovers} --seed {seed}"
        );
    }
    Ok(status.success())
}

/// `cargo xtask orphans`; false if a process of a pod was left.
pub(crate) fn orphans(tries: usize, seed: Option<u64>, output: Output) -> Result<bool> {
    let built = Built::new()?;
    let seed = seed.unwrap_or_else(any_seed).to_string();
    let tries = tries.to_string();
    let output = match output {
        Output::Table => "table",
        Output::Json => "json",
    };
    let mut command = built.load();
    let status = command
        .args(["orphans", "--tries", &tries, "--seed", &seed])
        .args(["--output", output])
        .status()?;
    if !status.success() {
        eprintln!("again with: cargo xtask orphans --tries {tries} --seed {seed}");
    }
    Ok(status.success())
}

/// `cargo xtask informers`; false if the controllers complain, or do not get their work done.
pub(crate) fn informers(seconds: u64) -> Result<bool> {
    let reference = tools::reference()?;
    let built = Built::new()?;
    let mut command = built.load();
    command.arg("informers").arg("--reference").arg(reference);
    command.args(["--seconds", &seconds.to_string()]);
    Ok(command.status()?.success())
}

/// Another one each time; it is printed, so that a run can be repeated.
#[expect(
    clippy::disallowed_methods,
    reason = "any number will do, and no product code sees it"
)]
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_millis() as u64)
}
