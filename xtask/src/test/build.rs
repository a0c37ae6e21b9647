//! Builds every test and program once.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::shown;
use crate::process;

/// What was built.
#[derive(Debug, Default)]
pub(crate) struct Build {
    pub(super) executables: Vec<Executable>,
    programs: Vec<(String, PathBuf)>,
}

/// A test executable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// The package, and the target within it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The folder of the package, in which cargo would run it.
    pub(super) folder: PathBuf,
}

impl Build {
    /// The program of this name.
    pub(crate) fn program(&self, name: &str) -> Result<&Path> {
        let found = self.programs.iter().find(|(program, _)| program == name);
        let (_, path) = found.with_context(|| format!("{name} was not built"))?;
        Ok(path)
    }

    /// Takes in one of cargo's messages.
    fn add(&mut self, message: &Value) -> Option<()> {
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        let path = PathBuf::from(message["executable"].as_str()?);
        let target = message["target"]["name"].as_str()?;
        let kind = message["target"]["kind"][0].as_str()?;
        if message["profile"]["test"] == true {
            let manifest = Path::new(message["manifest_path"].as_str()?);
            let folder = manifest.parent()?.to_owned();
            let package = folder.file_name()?.to_string_lossy().into_owned();
            let name = match kind {
                "test" => format!("{package} {target}"),
                _ => format!("{package} {kind}"),
            };
            self.executables.push(Executable { name, path, folder });
        } else if kind == "bin" {
            self.programs.push((target.to_owned(), path));
        }
        Some(())
    }
}

/// Builds all of them; a failure is an error, which the compiler's messages above explain.
pub(super) fn build(arguments: &[String]) -> Result<Build> {
    // Only what stands before `--` concerns the build.
    let selection = arguments.iter().take_while(|argument| *argument != "--");
    let flags = selection.filter(|argument| argument.starts_with("--features"));
    let mut command = process::cargo();
    command
        .args(["build", "--workspace", "--tests", "--bins", "--locked"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(flags)
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run cargo build")?;
    let stdout = child.stdout.take().context("cargo build has no output")?;
    let mut build = Build::default();
    for line in BufReader::new(stdout).lines() {
        build.add(&serde_json::from_str(&line?)?);
    }
    if !child.wait()?.success() {
        bail!("the tests could not be built: see above");
    }
    println!(
        " ✓ {:<20} {}",
        format!("{} executables", build.executables.len()),
        shown(build.program("neap")?)
    );
    Ok(build)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_and_programs_are_told_apart() {
        let mut build = Build::default();
        let artifact = |kind: &str, name: &str, test: bool, executable: Value| {
            json!({
                "reason": "compiler-artifact", "manifest_path": "/w/crates/kit/Cargo.toml",
                "target": {"kind": [kind], "name": name}, "profile": {"test": test},
                "executable": executable,
            })
        };
        for message in [
            artifact("lib", "neap_kit", false, Value::Null),
            artifact("lib", "neap_kit", true, json!("/w/target/kit-1")),
            artifact("test", "suite", true, json!("/w/target/suite-2")),
            artifact("bin", "neap", false, json!("/w/target/neap")),
            json!({"reason": "build-finished", "success": true}),
        ] {
            build.add(&message);
        }
        let names: Vec<_> = build.executables.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["kit lib", "kit suite"]);
        assert_eq!(build.executables[0].folder, Path::new("/w/crates/kit"));
        assert_eq!(build.program("neap").unwrap(), Path::new("/w/target/neap"));
        assert!(build.program("other").is_err());
    }
}
