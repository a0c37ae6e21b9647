//! `neap release` as its users start it: payloads that other programs read, in our registry and in Debian's, and
//! what happens when something is wrong.

mod bad_input;
mod peers;
mod registries;
mod sources;

use std::{
    path::Path,
    process::{Command, Output},
};

/// Runs `neap release` with a home of its own.
fn neap(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neap"))
        .arg("release")
        .args(args)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap()
}

/// The same, which must succeed; its output.
fn succeed(home: &Path, args: &[&str]) -> String {
    let output = neap(home, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The images of the sample as arguments of `assemble`.
fn components(registry: &str) -> Vec<String> {
    let names = [
        "cluster-version-operator",
        "cli",
        "web-operator",
        "dns-operator",
    ];
    let images = names.map(|name| format!("{name}={registry}/sample/{name}:v1"));
    images.to_vec()
}

/// Assembles the sample release as `release:TAG`, and returns the line that it prints.
fn assemble(home: &Path, registry: &str, tag: &str) -> String {
    let images = components(registry);
    let target = format!("{registry}/made/release:{tag}");
    let mut args = vec!["assemble", "--name", "4.99.0-ci.7", "--to-image", &target];
    args.extend(images.iter().map(String::as_str));
    succeed(home, &args)
}
