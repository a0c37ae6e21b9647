//! The commands of `neap farm`, each against the farm.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    bazel::Bazel,
    platform::{Platform, ROLL_OUT_LIMIT, condition, until},
};

const POOL: &str = "buildbarnworker/linux";

/// Runs commands, and compares what they print with what the farm is.
struct Asker<'a> {
    platform: &'a Platform,
    count: usize,
}

impl Asker<'_> {
    /// What the command prints; an error if a part of it is missing.
    fn ask(&mut self, arguments: &[&str], expected: &[&str]) -> Result<String> {
        self.count += 1;
        let text = self.platform.says(arguments)?;
        for part in expected {
            let command = arguments.join(" ");
            ensure!(
                text.contains(part),
                "neap {command} does not say {part:?}:\n{text}"
            );
        }
        Ok(text)
    }
}

/// Runs every command of `neap farm`.
pub(super) fn answer(platform: &Platform, bazel: &Bazel) -> Result<String> {
    let mut asker = Asker { platform, count: 0 };
    read(&mut asker)?;
    nearest_pool(&mut asker, bazel)?;
    drain(&mut asker, bazel)?;
    refuse(&mut asker)?;
    Ok(format!("{} commands", asker.count))
}

fn read(asker: &mut Asker<'_>) -> Result<()> {
    let farm = ["buildbarn", "4/5 ready", "2/2", "BuildbarnBrowser browser"];
    asker.ask(&["farm", "list"], &farm)?;
    let pool = ["linux", "ready", "2/2", "OSFamily=linux"];
    asker.ask(&["farm", "pools"], &pool)?;
    let queue = ["buildbarn/scheduler", "OSFamily=linux"];
    asker.ask(&["farm", "queue"], &queue)?;
    let workers = asker.ask(&["farm", "workers", "linux"], &["pod=linux-"])?;
    ensure!(
        workers.lines().count() == 5,
        "two pods with two threads each:\n{workers}"
    );
    asker.ask(&["farm", "plan"], &["BuildbarnStorage storage: Ready"])?;
    let flag = "--remote_executor=grpc://frontend.buildbarn:8980";
    asker.ask(&["farm", "bazelrc"], &[flag])?;
    asker.ask(&["explain", POOL], &["2 of 2 pods ready"])?;
    asker.ask(
        &["explain", "buildbarnbrowser/browser"],
        &["ErrImageNeverPull"],
    )?;
    Ok(())
}

/// What Bazel shows when no pool matches leads to the pool that nearly does.
fn nearest_pool(asker: &mut Asker<'_>, bazel: &Bazel) -> Result<()> {
    let other = "--remote_default_exec_properties=ISA=riscv";
    let refused = bazel.run("build", &[other, "--remote_retries=0", "//:part-1"])?;
    let mut lines = refused.text.lines();
    let message = lines.find(|line| line.contains("No workers exist"));
    let Some(message) = message else {
        anyhow::bail!(
            "Bazel does not say that no workers exist:\n{}",
            refused.text
        );
    };
    let differs = ["buildbarn/linux", "ISA=\"riscv\""];
    asker.ask(&["farm", "match", message], &differs)?;
    Ok(())
}

fn drain(asker: &mut Asker<'_>, bazel: &Bazel) -> Result<()> {
    let wait = ["farm", "drain", "linux", "--wait", "60s"];
    asker.ask(&wait, &["no action runs"])?;
    asker.ask(&["farm", "workers", "linux"], &["yes"])?;
    asker.ask(&["explain", POOL], &["Cordon"])?;
    let off = ["farm", "cordon", "linux", "--off"];
    asker.ask(&off, &["gets actions again"])?;
    asker.platform.settled()?;
    let arguments = ["--action_env=AFTER=cordon", "//:part-2"];
    bazel.run("build", &arguments)?.flawless()?;
    Ok(())
}

/// A spec that is not valid is explained.
fn refuse(asker: &mut Asker<'_>) -> Result<()> {
    let linux = json!({"name": "OSFamily", "value": "linux"});
    let twice = json!({"spec": {"platform": [linux, linux]}});
    asker.platform.patch(POOL, &twice)?;
    until("the pool is refused", ROLL_OUT_LIMIT, || {
        let [reason, _] = condition(&asker.platform.get(POOL)?, "Ready");
        Ok((reason == "InvalidPlatform").then_some(()))
    })?;
    asker.ask(&["explain", POOL], &["platform"])?;
    let once = json!({"spec": {"platform": [linux]}});
    asker.platform.patch(POOL, &once)?;
    asker.platform.settled()
}
