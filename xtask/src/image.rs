//! `cargo xtask image`: the OCI image of `neap`, built without a container engine.
//!
//! The program is linked statically and is the only executable of the image. Host names are resolved
//! by the C library inside the program, which reads `/etc/hosts` and `/etc/resolv.conf` as Kubernetes
//! mounts them. The same sources, toolchain and flags give the same digest: see [`archive`].

pub(crate) mod archive;
#[cfg(test)]
mod names;
pub(crate) mod sbom;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use self::archive::{Archive, Entry};
use crate::process;

/// The platform of the program. It is named to cargo so that build scripts and macros, which cannot
/// be linked statically, keep the flags of the host.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The user of the image, who is not root: the one that the manifests under `deploy/` name.
const USER: &str = "65532:65532";

#[derive(Debug, Args)]
pub(crate) struct Image {
    /// Profile to build with; `release` is quicker to build, `dist` is smaller and faster
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Name that the archive records, as `skopeo` and `docker load` show it
    #[arg(long, default_value_t = format!("neap:{}", env!("CARGO_PKG_VERSION")))]
    tag: String,
}

/// Builds the image and prints its digest and how to push it.
pub(crate) fn run(image: &Image) -> Result<bool> {
    let program = static_program(&image.profile)?;
    let bill = sbom::document()?;
    let folder = process::root().join("target/image");
    fs::create_dir_all(&folder)?;
    let path = folder.join("neap.tar");
    let sbom_path = folder.join("neap.spdx.json");
    let archive = Archive {
        entries: entries(fs::read(&program)?, bill.clone())?,
        config: config(),
        labels: labels(),
        tag: image.tag.clone(),
    };
    let written = archive.write(&path)?;
    fs::write(&sbom_path, &bill)?;
    let shown = |path: &PathBuf| {
        let inside = path.strip_prefix(process::root()).unwrap_or(path);
        inside.display().to_string()
    };
    println!(" ✓ {:<12} {}", "image", shown(&path));
    println!(" ✓ {:<12} {}", "digest", written.digest);
    println!(" ✓ {:<12} {}", "SBOM", shown(&sbom_path));
    println!(
        "   push it    skopeo copy oci-archive:{} docker://REGISTRY/neap:TAG",
        shown(&path)
    );
    Ok(true)
}

/// Builds `neap` without shared libraries.
pub(crate) fn static_program(profile: &str) -> Result<PathBuf> {
    let Flags { rust, c } = flags();
    let build = ["build", "--locked", "--package", "neap", "--bin", "neap"];
    let mut command = process::cargo();
    command
        .args(build)
        .args(["--profile", profile, "--target", TARGET])
        // Incremental builds divide crates by what was built before.
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_ENCODED_RUSTFLAGS", rust)
        .env("CC_SHELL_ESCAPED_FLAGS", "1")
        .env("CFLAGS", c);
    process::run(&mut command)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let built = process::root().join("target").join(TARGET).join(folder);
    Ok(built.join("neap"))
}

/// Flags of the compilers.
struct Flags {
    rust: String,
    c: String,
}

/// Flags that link statically and keep the paths of the machine out of the program: they differ between
/// machines, and the program would differ with them.
fn flags() -> Flags {
    let home =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|it| it + "/.cargo"));
    let root = process::root().display().to_string();
    let paths = std::iter::once((root, "/neap")).chain(home.ok().map(|it| (it, "/cargo")));
    let mut rust = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let mut c = Vec::new();
    for (path, name) in paths {
        rust.push(format!("--remap-path-prefix={path}={name}"));
        // Quoted as for a shell: the path may have a space.
        let path = path.replace('\'', r"'\''");
        c.push(format!("'-ffile-prefix-map={path}={name}'"));
    }
    Flags {
        // The separator of cargo, since a path may have a space.
        rust: rust.join("\x1f"),
        c: c.join(" "),
    }
}

fn entries(program: Vec<u8>, bill: Vec<u8>) -> Result<Vec<Entry>> {
    let text = |path: &str| {
        fs::read(process::root().join(path)).with_context(|| format!("cannot read {path}"))
    };
    // A program that looks its user up finds a name, and temporary files have a place.
    let users = b"root:x:0:0::/:/sbin/nologin\nneap:x:65532:65532::/:/sbin/nologin\n".to_vec();
    let groups = b"root:x:0:\nneap:x:65532:\n".to_vec();
    Ok(vec![
        Entry::folder("etc", 0o755),
        Entry::file("etc/group", 0o644, groups),
        Entry::file("etc/passwd", 0o644, users),
        Entry::file("neap", 0o755, program),
        Entry::folder("tmp", 0o1777),
        Entry::folder("usr", 0o755),
        Entry::folder("usr/share", 0o755),
        Entry::folder("usr/share/doc", 0o755),
        Entry::folder("usr/share/doc/neap", 0o755),
        Entry::file("usr/share/doc/neap/LICENSE", 0o644, text("LICENSE")?),
        Entry::file("usr/share/doc/neap/NOTICE", 0o644, text("NOTICE")?),
        Entry::file("usr/share/doc/neap/neap.spdx.json", 0o644, bill),
    ])
}

fn config() -> serde_json::Value {
    json!({
        "User": USER,
        "Entrypoint": ["/neap"],
        "Cmd": ["--help"],
        "Env": ["PATH=/"],
        "WorkingDir": "/",
    })
}

fn labels() -> Vec<(&'static str, String)> {
    let mut labels = vec![
        ("org.opencontainers.image.title", "neap".to_owned()),
        (
            "org.opencontainers.image.description",
            "Build it, release it, run it, rest it".to_owned(),
        ),
        (
            "org.opencontainers.image.version",
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
        ("org.opencontainers.image.licenses", "Apache-2.0".to_owned()),
    ];
    let mut git = std::process::Command::new("git");
    git.current_dir(process::root()).args(["rev-parse", "HEAD"]);
    // A copy of the sources without their history has no revision to name.
    if let Ok(revision) = process::output(&mut git) {
        let revision = revision.trim().to_owned();
        labels.push(("org.opencontainers.image.revision", revision));
    }
    labels
}
