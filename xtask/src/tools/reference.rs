//! The real control plane that ours is held against: built from its published modules, once.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use super::go;
use crate::process;

/// kube-apiserver, kube-controller-manager, kubectl and etcd in one program.
pub(crate) fn reference() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("NEAP_REFERENCE") {
        return Ok(path.into());
    }
    let source = process::root().join("tests/reference/kubernetes");
    let read = |name: &str| {
        fs::read_to_string(source.join(name)).with_context(|| format!("reading {name}"))
    };
    let module = read("go.mod")?;
    let version = version(&module).context("go.mod does not name k8s.io/kubernetes")?;
    let made_of = module + &read("go.sum")? + &read("main.go")?;
    let tools = process::root().join("target/tools");
    let (path, stamp) = (tools.join("reference"), tools.join("reference.stamp"));
    if !path.exists() || fs::read_to_string(&stamp).ok().as_ref() != Some(&made_of) {
        fs::create_dir_all(&tools)?;
        println!("building the reference control plane {version}: about 5 minutes the first time");
        go::build(&tools, &source, &path, &version)?;
        fs::write(&stamp, made_of)?;
    }
    Ok(path)
}

/// The release of Kubernetes that the module requires.
fn version(module: &str) -> Option<String> {
    let (_, rest) = module.split_once("\tk8s.io/kubernetes ")?;
    Some(rest.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_one_the_module_requires() {
        let module = "require (\n\tk8s.io/kubectl v0.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n";
        assert_eq!(version(module).as_deref(), Some("v1.36.3"));
        assert_eq!(version("module k8s.io/kubernetes\n"), None);
    }
}
