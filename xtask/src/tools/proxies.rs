//! The proxies that ours is measured against: two of Debian, two built from their published modules.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    debian::{self, Program},
    go,
};
use crate::process;

const DEBIAN: [Program; 2] = [
    debian::program("nginx", "NEAP_NGINX", "nginx", "usr/sbin"),
    debian::program("haproxy", "NEAP_HAPROXY", "haproxy", "usr/sbin"),
];

/// What is built of a module, and the module of ours that says which release.
const GO: [(&str, &str, &str); 2] = [
    (
        "interceptor",
        "NEAP_INTERCEPTOR",
        "github.com/kedacore/http-add-on/interceptor",
    ),
    (
        "activator",
        "NEAP_ACTIVATOR",
        "knative.dev/serving/cmd/activator",
    ),
];

/// All of them, by their names: those that their variables name, or else found or built.
pub(crate) fn proxies() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut all = Vec::new();
    for program in DEBIAN {
        all.push((program.name, debian::get(program)?));
    }
    for (name, variable, package) in GO {
        let path = match std::env::var_os(variable) {
            Some(path) => path.into(),
            None => built(name, package)?,
        };
        all.push((name, path));
    }
    Ok(all)
}

/// A program of the module that `tests/peers/NAME` requires, built once per version.
pub(super) fn built(name: &str, package: &str) -> Result<PathBuf> {
    let source = process::root().join("tests/peers").join(name);
    let read = |file: &str| {
        fs::read_to_string(source.join(file)).with_context(|| format!("reading {file} of {name}"))
    };
    let made_of = read("go.mod")? + &read("go.sum")?;
    let tools = process::root().join("target/tools");
    let (path, stamp) = (tools.join(name), tools.join(format!("{name}.stamp")));
    if !is_made_of(&path, &stamp, &made_of) {
        fs::create_dir_all(&tools)?;
        println!("building {package}: about a minute the first time");
        go::build_package(&tools, &source, &path, package)?;
        fs::write(&stamp, made_of)?;
    }
    Ok(path)
}

fn is_made_of(path: &Path, stamp: &Path, made_of: &str) -> bool {
    path.exists() && fs::read_to_string(stamp).is_ok_and(|stamp| stamp == made_of)
}
