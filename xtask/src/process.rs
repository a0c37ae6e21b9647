//! Running other programs.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

/// The cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// What the program writes to stdout; its stderr is part of the error if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = name(command);
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, stderr.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} does not write UTF-8"))
}

/// Runs the program with this tool's own terminal; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = name(command);
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut name = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args().take(3) {
        name.push(' ');
        name.push_str(&argument.to_string_lossy());
    }
    name
}
