//! Writes the kubeconfig with which clients connect as the admin.
//!
//! Invariant: only files that `neap up` wrote are replaced, and `~/.kube/config` is never written.

use std::{
    io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use neap_kit::hash::stable_hash;

use super::{identity::Identity, private};
use crate::exit::{Exit, Failure, chain};

/// The first line, which identifies files that `neap up` wrote.
const MARK: &str = "# Written by `neap up`, which replaces this file at every start.";

/// Why the file is not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("neap never writes the kubeconfig of your other clusters")]
    Users { path: PathBuf },
    #[error("the file exists and was not written by neap")]
    Foreign { path: PathBuf },
    #[error("the folder {} does not exist", folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("cannot write it")]
    File { path: PathBuf, source: io::Error },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (Error::Users { path }
        | Error::Foreign { path }
        | Error::NoFolder { path, .. }
        | Error::File { path, .. }) = &error;
        let what = format!("cannot write the kubeconfig {}", path.display());
        Self::new("NT-UP-0008", Exit::Refused, &what, &chain(&error))
            .remedy("choose another file: neap up --kubeconfig ./neap.kubeconfig")
    }
}

/// Returns the absolute path of the file, if it may be written.
pub(super) fn check_path(file: &Path) -> Result<PathBuf, Error> {
    let path = std::path::absolute(file).map_err(|source| Error::File {
        path: file.to_owned(),
        source,
    })?;
    let home = std::env::home_dir().map(|home| home.join(".kube/config"));
    if home.is_some_and(|users| same(&users, &path)) {
        return Err(Error::Users { path });
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        let folder = folder.to_owned();
        return Err(Error::NoFolder { path, folder });
    }
    match private::read(&path) {
        Ok(Some(text)) if !text.is_empty() && !text.starts_with(MARK) => {
            Err(Error::Foreign { path })
        }
        Ok(_) => Ok(path),
        Err(source) => Err(Error::File { path, source }),
    }
}

/// Whether both paths name the same file, for example through a symbolic link.
fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

/// The name of cluster, user and context: `neap` for a server that keeps nothing. One with a data folder
/// has a name of its own, by the folder and its certificate authority, so that several kubeconfigs can be
/// used together (`KUBECONFIG=a:b`) and a context means the same server after every start.
pub(super) fn context_name(data: Option<&Path>, authority: &[u8]) -> String {
    let Some(data) = data else {
        return "neap".to_owned();
    };
    let folder = data
        .canonicalize()
        .ok()
        .and_then(|it| Some(it.file_name()?.to_string_lossy().into_owned()));
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let folder: String = folder.unwrap_or_default().chars().map(plain).collect();
    let folder = folder.strip_prefix("neap-").unwrap_or(&folder);
    let mark = stable_hash([authority]) & 0xffff;
    format!("neap-{folder}-{mark:04x}")
}

/// Writes the kubeconfig for the server at `url`, with this name of the context.
pub(super) fn write(
    path: &Path,
    url: &str,
    context: &str,
    identity: &Identity,
) -> Result<(), Error> {
    private::write(path, &text(url, context, identity)).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// Every value is base64 or needs no YAML escaping. Token and certificate belong to different users: if
/// one user had both, `kubectl --token` would still authenticate with the certificate, which takes
/// precedence.
fn text(url: &str, context: &str, identity: &Identity) -> String {
    let authority = STANDARD.encode(identity.authority());
    let (certificate, key) = identity.admin();
    let (certificate, key) = (STANDARD.encode(certificate), STANDARD.encode(key));
    let token = identity.token();
    format!(
        "{MARK}
apiVersion: v1
kind: Config
clusters:
- name: {context}
  cluster:
    server: \"{url}\"
    certificate-authority-data: {authority}
users:
- name: {context}
  user:
    token: \"{token}\"
- name: {context}-certificate
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {context}
    namespace: default
current-context: {context}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_has_a_context_of_its_own_that_stays() {
        let parent = tempfile::tempdir().unwrap();
        let (one, two) = (
            parent.path().join("neap-data"),
            parent.path().join("my shop"),
        );
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
        }
        assert_eq!(context_name(None, b"a"), "neap");
        let name = context_name(Some(&one), b"a");
        assert!(name.starts_with("neap-data-") && name.len() == 14, "{name}");
        assert_eq!(context_name(Some(&one.join(".")), b"a"), name);
        assert_ne!(context_name(Some(&one), b"b"), name, "another server");
        let name = context_name(Some(&two), b"a");
        assert!(name.starts_with("neap-my-shop-"), "{name}");
    }

    #[test]
    fn foreign_file_is_refused_and_own_file_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        assert!(check_path(&path).is_ok());
        std::fs::write(&path, "apiVersion: v1\n").unwrap();
        assert!(matches!(check_path(&path), Err(Error::Foreign { .. })));
        std::fs::write(&path, format!("{MARK}\napiVersion: v1\n")).unwrap();
        assert!(check_path(&path).is_ok());
    }

    #[test]
    fn missing_folder_is_named_before_anything_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let missing = parent.path().join("missing");
        assert!(matches!(
            check_path(&missing.join("config")),
            Err(Error::NoFolder { folder, .. }) if folder == missing
        ));
    }

    #[test]
    fn one_file_is_recognized_under_two_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("kube")).unwrap();
        std::os::unix::fs::symlink(path.join("kube"), path.join("link")).unwrap();
        assert!(same(&path.join("kube/config"), &path.join("link/config")));
        assert!(!same(&path.join("kube/config"), &path.join("kube/other")));
    }
}
