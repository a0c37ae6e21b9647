//! `cargo xtask buildbarn`: builds the programs of Buildbarn from the Go module proxy, once, and writes the
//! table of images with which `neap up` runs them.
//!
//! Upstream builds with Bazel and patches two of its dependencies on the way; the same patches are applied to
//! copies of those modules here. `bb_browser` cannot be built this way.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// The newest version that clients of REv2.0 can use, of 2026-03-19.
const REMOTE_EXECUTION: &str =
    "github.com/buildbarn/bb-remote-execution@v0.0.0-20260319042723-cd89f0554d18";
const FUSE: &str = "github.com/hanwen/go-fuse/v2@v2.5.1";
const BYTE_STREAM: &str =
    "google.golang.org/genproto/googleapis/bytestream@v0.0.0-20260226221140-a57be14db171";
const PATCHES: [&str; 3] = [
    "direntrylist-offsets-and-testability",
    "writeback-cache",
    "notify-testability",
];
const PROGRAMS: [&str; 5] = [
    "bb_storage",
    "bb_scheduler",
    "bb_worker",
    "bb_runner",
    "bb_noop_worker",
];

/// The folder with the programs in `bin` and the table `images.toml`, built if it is missing.
pub(crate) fn buildbarn() -> Result<PathBuf> {
    let folder = process::root().join("target/tools/buildbarn");
    let programs = folder.join("bin");
    if !PROGRAMS
        .iter()
        .all(|program| programs.join(program).exists())
    {
        println!("   building Buildbarn from the Go module proxy; this happens once");
        build(&folder)?;
    }
    fs::write(folder.join("images.toml"), images(&programs))?;
    Ok(folder)
}

/// Builds, and says where the table is.
pub(crate) fn run() -> Result<()> {
    let folder = buildbarn()?;
    println!("neap up --images {}", folder.join("images.toml").display());
    Ok(())
}

fn build(folder: &Path) -> Result<()> {
    let source = folder.join("source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(&source)?;
    fs::write(source.join("go.mod"), "module buildbarn\n\ngo 1.24\n")?;
    let programs = copy(&source, REMOTE_EXECUTION, "programs")?;
    let fuse = copy(&source, FUSE, "fuse")?;
    let byte_stream = copy(&source, BYTE_STREAM, "bytestream")?;
    for patch in PATCHES {
        let file = format!("patches/com_github_hanwen_go_fuse_v2/{patch}.diff");
        let mut command = Command::new("patch");
        command.args(["-p0", "-i"]).arg(programs.join(file));
        process::run(command.current_dir(&fuse))?;
    }
    accept_any_registrar(&byte_stream)?;
    let mut edit = go(&programs);
    edit.args(["mod", "edit"])
        .args(["-replace", "github.com/hanwen/go-fuse/v2=../fuse"])
        .args([
            "-replace",
            "google.golang.org/genproto/googleapis/bytestream=../bytestream",
        ]);
    process::run(&mut edit)?;
    let output = folder.join("bin");
    fs::create_dir_all(&output)?;
    let mut command = go(&programs);
    command.arg("build").arg("-o").arg(&output);
    command.args(
        PROGRAMS
            .iter()
            .filter(|it| **it != "bb_storage")
            .map(|it| format!("./cmd/{it}")),
    );
    command.arg("github.com/buildbarn/bb-storage/cmd/bb_storage");
    process::run(&mut command)?;
    fs::remove_dir_all(&source).context("the sources cannot be removed")
}

fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(folder)
        // The checksum database does not know them.
        .env("GONOSUMDB", "github.com/buildbarn/*")
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("CGO_ENABLED", "0");
    command
}

/// A copy of a module that can be changed.
fn copy(source: &Path, module: &str, name: &str) -> Result<PathBuf> {
    let text = process::output(go(source).args(["mod", "download", "-json", module]))?;
    let answer: Value = serde_json::from_str(&text)?;
    let from = answer["Dir"]
        .as_str()
        .context("go does not say where the module is")?;
    let to = source.join(name);
    process::run(
        Command::new("cp")
            .args(["-r", "--no-preserve=mode", from])
            .arg(&to),
    )?;
    Ok(to)
}

/// Buildbarn registers the service with more than one kind of server.
fn accept_any_registrar(module: &Path) -> Result<()> {
    let old = "func RegisterByteStreamServer(s *grpc.Server,";
    for entry in fs::read_dir(module)? {
        let path = entry?.path();
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if text.contains(old) {
            let new = "func RegisterByteStreamServer(s grpc.ServiceRegistrar,";
            return Ok(fs::write(path, text.replace(old, new))?);
        }
    }
    bail!("the registration of the byte stream has another form than expected")
}

/// The images of `examples/farm`. Tags do not matter to the table.
fn images(programs: &Path) -> String {
    let mut text = String::from("# Written by cargo xtask buildbarn.\n");
    let mut entry = |name: &str, command: &[String]| {
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\n[[image]]\nname = {name:?}\ncommand = {command:?}\n"
        );
    };
    let program = |name: &str| programs.join(name).display().to_string();
    for image in ["bb-storage", "bb-scheduler", "bb-worker"] {
        let command = program(&image.replace('-', "_"));
        entry(&format!("ghcr.io/buildbarn/{image}"), &[command]);
    }
    let install = format!(
        "cp {} /bb/bb_runner && chmod 0555 /bb/bb_runner && touch /bb/installed",
        program("bb_runner")
    );
    let shell = |script: String| ["/bin/sh".to_owned(), "-c".to_owned(), script];
    entry("ghcr.io/buildbarn/bb-runner-installer", &shell(install));
    entry("ghcr.io/catthehacker/ubuntu", &["/bin/sh".to_owned()]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_of_the_example_is_in_the_table() {
        let table = images(Path::new("/programs"));
        let example = fs::read_to_string(process::root().join("examples/farm/farm.yaml")).unwrap();
        let images = example.lines().filter_map(|line| line.split_once("mage: "));
        for (_, image) in images {
            let name = image.split(':').next().unwrap();
            assert!(table.contains(name), "{name}");
        }
    }
}
