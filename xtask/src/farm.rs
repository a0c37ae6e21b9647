//! `cargo xtask farm`: the real programs of Buildbarn and Debian's Bazel on a `neap up`.

mod bazel;
mod commands;
mod configurations;
mod platform;
mod reference;
mod scenarios;

use std::path::PathBuf;

use anyhow::{Context, Result};

use self::{
    bazel::Bazel,
    platform::{Platform, Programs},
};
use crate::{buildbarn, process, stopwatch::Stopwatch, tools};

/// Does something to the farm; the text says what was seen.
type Scenario = fn(&Platform, &Bazel) -> Result<String>;

const SCENARIOS: [(&str, Scenario); 6] = [
    (
        "Bazel builds and tests, and the second build hits the cache",
        scenarios::builds,
    ),
    ("every command answers about the farm", commands::answer),
    (
        "what is rendered from other settings starts",
        configurations::start,
    ),
    (
        "a pool of 4 shrinks to 1 under load, and each action runs once",
        scenarios::shrinks,
    ),
    (
        "storage goes from 2 to 3 shards under load without an error",
        scenarios::resharded,
    ),
    (
        "a broken roll-out stops before the second component",
        scenarios::broken,
    ),
];

/// Plays the scenarios whose name has `only` in it, or those on a real kube-apiserver; false if one fails.
pub(crate) fn run(only: &str, on_reference: bool) -> Result<bool> {
    if on_reference {
        return reference::run();
    }
    let programs = programs()?;
    let watch = Stopwatch::start();
    let platform = Platform::start(&programs)?;
    println!(" ✓ the example farm is ready in {watch}");
    let bazel = Bazel::new(&programs.bazel, &platform)?;
    let mut holds = true;
    for (name, scenario) in SCENARIOS {
        if !name.contains(only) {
            continue;
        }
        let watch = Stopwatch::start();
        match scenario(&platform, &bazel) {
            Ok(seen) => println!(" ✓ {name}: {seen} ({watch})"),
            Err(error) => {
                println!(" ✗ {name} ({watch}): {error:#}");
                holds = false;
            }
        }
    }
    if !holds {
        println!("the log of neap up:\n{}", platform.log());
    }
    Ok(holds)
}

fn programs() -> Result<Programs> {
    let bazel = bazel_program()?;
    let build = [
        "build",
        "--locked",
        "--quiet",
        "--package",
        "neap",
        "--bin",
        "neap",
    ];
    process::run(process::cargo().args(build))?;
    let images = buildbarn::buildbarn()?.join("images.toml");
    Ok(Programs {
        neap: neap(),
        kubectl: tools::kubectl()?.path,
        bazel,
        images,
    })
}

/// The Bazel that `NEAP_BAZEL` names, or that of the machine. Debian's finds its parts only where its package
/// puts them, so it cannot be unpacked elsewhere.
fn bazel_program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("NEAP_BAZEL") {
        return Ok(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("bazel"));
    let found = found.find(|program| program.is_file());
    found.context("there is no bazel: apt-get install bazel-bootstrap, or set NEAP_BAZEL")
}

fn neap() -> PathBuf {
    process::root().join("target/debug/neap")
}
