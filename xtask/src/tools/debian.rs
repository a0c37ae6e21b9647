//! Programs from Debian's packages: found, or else fetched and unpacked beside what is built here, so
//! that nothing on the machine changes and no root is needed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, Result, anyhow, bail};

use super::is_program;
use crate::process;

/// A program, and the package that carries it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Names it to the tests; who sets it chooses another.
    pub(crate) variable: &'static str,
    package: &'static str,
    /// The folder it is in, where `*` stands for whatever folder is there, the last by name.
    folder: &'static str,
}

pub(super) const fn program(
    name: &'static str,
    variable: &'static str,
    package: &'static str,
    folder: &'static str,
) -> Program {
    Program {
        name,
        variable,
        package,
        folder,
    }
}

const POSTGRESQL: &str = "usr/lib/postgresql/*/bin";

/// What the tests drive and are driven by.
pub(crate) const FOR_TESTS: [Program; 9] = [
    program("curl", "NEAP_CURL", "curl", "usr/bin"),
    program("psql", "NEAP_PSQL", "postgresql-client", POSTGRESQL),
    program("initdb", "NEAP_INITDB", "postgresql", POSTGRESQL),
    program("postgres", "NEAP_POSTGRES", "postgresql", POSTGRESQL),
    program("prometheus", "NEAP_PROMETHEUS", "prometheus", "usr/bin"),
    program("h2load", "NEAP_H2LOAD", "nghttp2-client", "usr/bin"),
    SKOPEO,
    program("umoci", "NEAP_UMOCI", "umoci", "usr/bin"),
    REGISTRY,
];

/// A client of registries.
pub(crate) const SKOPEO: Program = program("skopeo", "NEAP_SKOPEO", "skopeo", "usr/bin");
/// A registry.
pub(crate) const REGISTRY: Program = program(
    "docker-registry",
    "NEAP_DOCKER_REGISTRY",
    "docker-registry",
    "usr/bin",
);
/// PostgreSQL with its benchmark, by their names.
pub(crate) fn postgresql() -> Result<Vec<(&'static str, PathBuf)>> {
    let pgbench = program("pgbench", "NEAP_PGBENCH", "postgresql", POSTGRESQL);
    let [_, _, initdb, postgres, ..] = FOR_TESTS;
    let all = [initdb, postgres, pgbench].into_iter();
    all.map(|program| Ok((program.name, get(program)?)))
        .collect()
}

/// The program that its variable names, or the one that the machine has, or the one that was fetched
/// before, or one that is fetched now.
pub(crate) fn get(program: Program) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(program.variable) {
        return Ok(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // What is on the path may be a script of the package that picks one of several versions.
    let own = within(Path::new("/"), program.folder).map(|folder| folder.join(program.name));
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(program.name));
    if let Some(found) = own.into_iter().chain(on_path).find(|path| is_program(path)) {
        return Ok(found);
    }
    let debian = process::root().join("target/tools/debian");
    let root = debian.join(program.package);
    let unpacked = |root: &Path| {
        let path = within(root, program.folder)?.join(program.name);
        is_program(&path).then_some(path)
    };
    if unpacked(&root).is_none() {
        println!(
            "   fetching the Debian package {}; this happens once",
            program.package
        );
        fetch(&debian, program.package).with_context(|| format!("there is no {}", program.name))?;
    }
    let path =
        unpacked(&root).with_context(|| format!("{} has no {}", program.package, program.name))?;
    wrapped(&debian, &root, program.name, &path)
}

/// What packages there are was asked for in this run, or why not.
static LISTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Fetches a package with what it needs and the machine lacks, and unpacks all of it in a folder of
/// its name.
fn fetch(debian: &Path, package: &str) -> Result<()> {
    let archives = debian.join(format!("{package}.debs"));
    for folder in [archives.join("partial"), debian.join("lists/partial")] {
        fs::create_dir_all(folder)?;
    }
    let list = || process::output(apt(debian, &archives).arg("update")).map(drop);
    let listed = LISTED.get_or_init(|| list().map_err(|error| format!("{error:#}")));
    listed.clone().map_err(|error| anyhow!(error))?;
    let mut install = apt(debian, &archives);
    install.args([
        "install",
        "--download-only",
        "--no-install-recommends",
        "-y",
    ]);
    process::output(install.arg(package))?;
    let (root, partly) = (
        debian.join(package),
        debian.join(format!("{package}.partly")),
    );
    let _ = fs::remove_dir_all(&partly);
    fs::create_dir_all(&partly)?;
    let mut found = 0;
    for entry in fs::read_dir(&archives)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            process::output(Command::new("dpkg-deb").arg("-x").args([&path, &partly]))?;
            found += 1;
        }
    }
    if found == 0 {
        bail!("the machine says that {package} is installed, but it is not where it should be");
    }
    let _ = fs::remove_dir_all(&root);
    fs::rename(partly, root)?;
    Ok(fs::remove_dir_all(archives)?)
}

/// apt-get, with all that it writes in folders of ours.
fn apt(debian: &Path, archives: &Path) -> Command {
    let mut apt = Command::new("apt-get");
    let set = |name: &str, value: &Path| format!("{name}={}", value.display());
    apt.arg("-q")
        .args(["-o", "Debug::NoLocking=true"])
        .args(["-o", &set("Dir::State::lists", &debian.join("lists"))])
        .args(["-o", &set("Dir::Cache", debian)])
        .args(["-o", &set("Dir::Cache::archives", archives)])
        .env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

/// A script that runs the program with the libraries that came with it.
fn wrapped(debian: &Path, root: &Path, name: &str, path: &Path) -> Result<PathBuf> {
    let libraries: Vec<_> = ["usr/lib/*-linux-gnu*", "lib/*-linux-gnu*"]
        .iter()
        .filter_map(|folder| within(root, folder))
        .map(|folder| folder.display().to_string())
        .collect();
    let script = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{}'${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} exec '{}' \"$@\"\n",
        libraries.join(":"),
        path.display()
    );
    let folder = debian.join("bin");
    fs::create_dir_all(&folder)?;
    let wrapper = folder.join(name);
    if fs::read_to_string(&wrapper).ok().as_ref() != Some(&script) {
        fs::write(&wrapper, script)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    }
    Ok(wrapper)
}

/// The folder below `root`, where a part with a `*` is the last by name that fits.
fn within(root: &Path, folder: &str) -> Option<PathBuf> {
    let mut here = root.to_owned();
    for part in folder.split('/') {
        let Some((before, after)) = part.split_once('*') else {
            here.push(part);
            continue;
        };
        let after = after.trim_end_matches('*');
        let names = fs::read_dir(&here).ok()?.flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let fitting = names.filter(|name| name.starts_with(before) && name.contains(after));
        here.push(fitting.max()?);
    }
    here.is_dir().then_some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_folder_stands_for_a_star() {
        let root = tempfile::tempdir().unwrap();
        for version in ["14", "17", "15"] {
            let folder = format!("usr/lib/postgresql/{version}/bin");
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let newest = root.path().join("usr/lib/postgresql/17/bin");
        assert_eq!(within(root.path(), POSTGRESQL), Some(newest));
        assert_eq!(within(root.path(), "usr/lib/*-linux-gnu*"), None);
        assert_eq!(within(root.path(), "usr/bin"), None);
    }

    #[test]
    fn a_program_finds_the_libraries_that_came_with_it() {
        let debian = tempfile::tempdir().unwrap();
        let root = debian.path().join("package");
        fs::create_dir_all(root.join("usr/lib/x86_64-linux-gnu")).unwrap();
        let path = wrapped(debian.path(), &root, "env", Path::new("/usr/bin/env")).unwrap();
        // Another process reads it: what this one still writes cannot be run.
        let printed = process::output(Command::new("sh").arg(path)).unwrap();
        let folder = root.join("usr/lib/x86_64-linux-gnu");
        let expected = format!("LD_LIBRARY_PATH={}", folder.display());
        assert!(
            printed.lines().any(|line| line.starts_with(&expected)),
            "{printed}"
        );
    }
}
