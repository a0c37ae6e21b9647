//! The clients that tests drive the product with: found, or else built.

mod azure_sdk;
pub(crate) mod debian;
mod go;
mod helm;
mod proxies;
mod python;
mod reference;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub(crate) use self::{
    azure_sdk::{azure_sdk, releases as azure_sdk_releases},
    debian::postgresql,
    helm::helm,
    proxies::proxies,
    reference::reference,
};
use crate::process;

/// The oldest kubectl whose behaviour the tests rely on.
const OLDEST_MINOR: u32 = 31;

/// A kubectl, and the version it says it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kubectl {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// The kubectl named by `NEAP_KUBECTL`, or a recent one from the PATH, or one built from source.
pub(crate) fn kubectl() -> Result<Kubectl> {
    if let Some(path) = std::env::var_os("NEAP_KUBECTL") {
        let path = PathBuf::from(path);
        let version = client_version(&path).context("NEAP_KUBECTL names no kubectl")?;
        return Ok(Kubectl { path, version });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find_map(|folder| usable(&folder.join("kubectl")))
        .map_or_else(built, Ok)
}

/// Objects with every field set, in JSON and in protobuf, that the Go module of the API carries.
pub(crate) fn api_testdata() -> Result<PathBuf> {
    let root = process::root();
    let module = root.join("tests/reference/protobuf-fixtures");
    let folder = go::download(&root.join("target/tools"), &module, "k8s.io/api")?;
    let folder = folder.join("testdata/HEAD");
    if !folder.is_dir() {
        bail!("{} is not there", folder.display());
    }
    Ok(folder)
}

/// Debian's registry, and skopeo if it is compared with.
pub(crate) fn registry_programs(peer: bool) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut programs = vec![("registry", debian::get(debian::REGISTRY)?)];
    if peer {
        programs.push(("skopeo", debian::get(debian::SKOPEO)?));
    }
    Ok(programs)
}

/// The registry client of go-containerregistry: the one named by `NEAP_CRANE`, or one built from source.
pub(crate) fn crane() -> Result<PathBuf> {
    match std::env::var_os("NEAP_CRANE") {
        Some(path) => Ok(path.into()),
        None => proxies::built("crane", "github.com/google/go-containerregistry/cmd/crane"),
    }
}

/// The program itself if it will do; if it only picks another by the server's version, the
/// newest of those beside it.
fn usable(path: &Path) -> Option<Kubectl> {
    if !is_program(path) {
        return None;
    }
    let version = client_version(path).ok()?;
    if !version.contains("dispatcher") {
        let recent = minor(&version)? >= OLDEST_MINOR;
        let path = path.to_owned();
        return recent.then_some(Kubectl { path, version });
    }
    let folder = path.canonicalize().ok()?.parent()?.to_owned();
    let mut beside: Vec<_> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| sibling(&entry.ok()?.path()))
        .filter(|(minor, _)| *minor >= OLDEST_MINOR)
        .collect();
    beside.sort();
    beside.into_iter().rev().find_map(|(_, path)| {
        let version = client_version(&path).ok()?;
        Some(Kubectl { path, version })
    })
}

/// The minor version in a name such as `kubectl.1.33`.
fn sibling(path: &Path) -> Option<(u32, PathBuf)> {
    let name = path.file_name()?.to_str()?;
    let minor = name.strip_prefix("kubectl.1.")?.parse().ok()?;
    is_program(path).then(|| (minor, path.to_owned()))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn client_version(kubectl: &Path) -> Result<String> {
    let text = process::output(Command::new(kubectl).args(["version", "--client", "-o", "json"]))?;
    let version: Value = serde_json::from_str(&text)?;
    let version = version.pointer("/clientVersion/gitVersion");
    let version = version.and_then(Value::as_str).context("no version")?;
    Ok(version.to_owned())
}

/// 33 of `v1.33.4`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("v1.")?.split('.').next()?.parse().ok()
}

/// Builds kubectl from its published module, once per version.
fn built() -> Result<Kubectl> {
    let source = process::root().join("tests/reference/kubectl");
    let module = fs::read_to_string(source.join("go.mod"))?;
    let version = module_version(&module).context("go.mod does not name k8s.io/kubectl")?;
    let tools = process::root().join("target/tools");
    let (path, stamp) = (tools.join("kubectl"), tools.join("kubectl.stamp"));
    let made_of = module + &fs::read_to_string(source.join("main.go"))?;
    if !path.exists() || fs::read_to_string(&stamp).ok().as_ref() != Some(&made_of) {
        fs::create_dir_all(&tools)?;
        println!("   building kubectl {version} from k8s.io/kubectl; this happens once");
        go::build(&tools, &source, &path, &version)?;
        fs::write(&stamp, made_of)?;
    }
    let printed = client_version(&path)?;
    if printed != version {
        bail!("built kubectl {version}, but it reports {printed}");
    }
    Ok(Kubectl { path, version })
}

/// `v1.36.3` for the module version `v0.36.3`.
fn module_version(module: &str) -> Option<String> {
    let (_, rest) = module.split_once("k8s.io/kubectl v0.")?;
    let rest = rest.split_whitespace().next()?;
    Some(format!("v1.{rest}"))
}

#[cfg(test)]
mod tests;
