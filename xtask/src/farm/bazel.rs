//! Debian's Bazel, which builds on the farm.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail};

use super::platform::Platform;
use crate::process;

/// The longest that a command may take, in seconds.
const RUN_LIMIT: &str = "180";

/// A workspace, and the Bazel that builds it. Its server is stopped on drop.
pub(super) struct Bazel {
    program: PathBuf,
    workspace: PathBuf,
    output_root: PathBuf,
}

/// What came of a build.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) text: String,
    pub(super) success: bool,
}

impl Drop for Bazel {
    fn drop(&mut self) {
        let _ = self.command("shutdown").output();
    }
}

impl Bazel {
    /// A copy of the example workspace, with the flags that `neap farm bazelrc` prints.
    pub(super) fn new(program: &Path, platform: &Platform) -> Result<Self> {
        let workspace = platform.folder().join("workspace");
        let example = process::root().join("examples/farm/workspace");
        process::run(Command::new("cp").arg("-r").arg(example).arg(&workspace))?;
        let bazel = Self {
            program: program.to_owned(),
            workspace,
            output_root: platform.folder().join("bazel"),
        };
        bazel.take_flags(platform)?;
        Ok(bazel)
    }

    /// Writes the flags for the farm as it is now.
    pub(super) fn take_flags(&self, platform: &Platform) -> Result<()> {
        let flags = platform.says(&["farm", "bazelrc", "--cluster-ip"])?;
        Ok(fs::write(self.workspace.join(".bazelrc"), flags)?)
    }

    fn command(&self, verb: &str) -> Command {
        // An action that no worker takes would wait for hours.
        let mut command = Command::new("timeout");
        command.args(["--signal", "INT", "--kill-after", "30", RUN_LIMIT]);
        command.arg(&self.program);
        let mut root = std::ffi::OsString::from("--output_user_root=");
        root.push(&self.output_root);
        command
            .current_dir(&self.workspace)
            .args(["--nohome_rc".as_ref(), root.as_os_str()])
            .arg(verb)
            .stdin(Stdio::null());
        command
    }

    /// Builds or tests, with more flags and the targets.
    pub(super) fn run(&self, verb: &str, arguments: &[&str]) -> Result<Built> {
        let mut command = self.command(verb);
        let output = command
            .args(["--color=no", "--curses=no", "--show_progress=no"])
            .args(arguments)
            .output()
            .context("cannot run bazel")?;
        Ok(Built::of(&output))
    }

    /// Forgets everything that it has built.
    pub(super) fn clean(&self) -> Result<()> {
        process::output(self.command("clean").stderr(Stdio::null())).map(drop)
    }

    /// Makes a package of `count` actions, each of which takes `seconds` and appends its number to `file`.
    pub(super) fn package(
        &self,
        name: &str,
        count: usize,
        seconds: f32,
        file: &Path,
    ) -> Result<()> {
        let folder = self.workspace.join(name);
        fs::create_dir_all(&folder)?;
        fs::write(file, "")?;
        // Actions run as a user of their own.
        fs::set_permissions(file, fs::Permissions::from_mode(0o666))?;
        let mut text = String::new();
        writeln!(text, "[genrule(")?;
        writeln!(text, "    name = \"action-%d\" % number,")?;
        writeln!(text, "    outs = [\"action-%d.txt\" % number],")?;
        writeln!(
            text,
            "    cmd = \"sleep {seconds}; echo $${{SALT:-}} %d >> {}; echo $${{SALT:-}} %d > $@\" % (number, number),",
            file.display()
        )?;
        writeln!(text, ") for number in range({count})]")?;
        Ok(fs::write(folder.join("BUILD.bazel"), text)?)
    }
}

impl Built {
    fn of(output: &Output) -> Self {
        let text = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        Self {
            text: text.concat(),
            success: output.status.success(),
        }
    }

    /// The build, if it succeeded and Bazel shows nothing that went wrong.
    pub(super) fn flawless(self) -> Result<Self> {
        let complaints = ["ERROR", "WARNING: Remote", "FAILED", "UNAVAILABLE"];
        if !self.success || complaints.iter().any(|it| self.text.contains(it)) {
            bail!("Bazel says:\n{}", self.text.trim());
        }
        Ok(self)
    }

    /// How many of its actions ran in this way: `remote`, `remote cache hit` or `linux-sandbox`.
    pub(super) fn count(&self, way: &str) -> usize {
        let lines = self.text.lines();
        let summary = lines.filter_map(|line| line.strip_prefix("INFO: "));
        let mut summary = summary.filter_map(|line| line.split_once(" processes: "));
        let ways = summary
            .next_back()
            .map_or("", |(_, ways)| ways.trim_end_matches('.'));
        let mut ways = ways.split(", ").filter_map(|it| it.trim().split_once(' '));
        let found = ways.find(|(_, name)| *name == way);
        found.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_counted_by_the_way_in_which_they_ran() {
        let built = Built {
            text: "INFO: Elapsed time: 3.4s\nINFO: 13 processes: 9 remote cache hit, 3 internal, 1 remote.\n"
                .to_owned(),
            success: true,
        };
        assert_eq!(built.count("remote cache hit"), 9);
        assert_eq!(built.count("remote"), 1);
        assert_eq!(built.count("linux-sandbox"), 0);
        let failed = Built {
            text: "ERROR: no".to_owned(),
            success: true,
        };
        assert!(failed.flawless().is_err());
    }
}
