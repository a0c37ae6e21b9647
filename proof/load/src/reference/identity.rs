//! The keys and certificates of a control plane, created once per folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::tokens::{self, Token};

pub(super) const AUTHORITY: &str = "ca.crt";
pub(super) const SERVING: [&str; 2] = ["serving.crt", "serving.key"];
/// The key that signs tokens of service accounts, and the one that verifies them.
pub(super) const ACCOUNTS: [&str; 2] = ["accounts.key", "accounts.pub"];
pub(super) const TOKENS: &str = "tokens.csv";
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// The names and addresses of the server.
const HOSTS: [&str; 4] = [
    "127.0.0.1",
    "10.0.0.1",
    "localhost",
    "kubernetes.default.svc",
];

/// The files in the folder.
#[derive(Debug)]
pub(super) struct IdentityFiles {
    folder: PathBuf,
    authority: String,
}

impl IdentityFiles {
    /// Creates missing files, and writes the tokens anew.
    pub(super) fn open(folder: &Path, tokens: &[Token]) -> Result<Self> {
        if !folder.join(AUTHORITY).exists() {
            make(folder)?;
        }
        fs::write(folder.join(TOKENS), tokens::file(tokens))?;
        let authority = fs::read_to_string(folder.join(AUTHORITY)).context("reading ca.crt")?;
        Ok(Self {
            folder: folder.to_owned(),
            authority,
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Writes one value per line, as our own parser expects.
    pub(super) fn write_kubeconfig(&self, base: &str) -> Result<()> {
        let authority = STANDARD.encode(&self.authority);
        let token = tokens::ADMIN;
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: reference\n  cluster:\n    \
             server: \"{base}\"\n    certificate-authority-data: {authority}\nusers:\n\
             - name: admin\n  user:\n    token: \"{token}\"\ncontexts:\n- name: reference\n  \
             context:\n    cluster: reference\n    user: admin\ncurrent-context: reference\n"
        );
        fs::write(self.folder.join(KUBECONFIG), text).context("writing the kubeconfig")
    }
}

/// The authority comes last: a folder that has it has everything.
fn make(folder: &Path) -> Result<()> {
    let accounts = KeyPair::generate()?;
    fs::write(folder.join(ACCOUNTS[0]), accounts.serialize_pem())?;
    fs::write(folder.join(ACCOUNTS[1]), accounts.public_key_pem())?;

    let mut params = CertificateParams::default();
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "reference");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    serving(folder, &Issuer::from_params(&params, &key))?;
    fs::write(folder.join(AUTHORITY), authority.pem())?;
    Ok(())
}

fn serving(folder: &Path, issuer: &Issuer<'_, &KeyPair>) -> Result<()> {
    let mut params = CertificateParams::new(HOSTS.map(str::to_owned))?;
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    fs::write(folder.join(SERVING[0]), certificate.pem())?;
    fs::write(folder.join(SERVING[1]), key.serialize_pem())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig::Kubeconfig;

    #[test]
    fn files_are_made_once_and_the_kubeconfig_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let first = IdentityFiles::open(folder.path(), &[]).unwrap();
        first.write_kubeconfig("https://127.0.0.1:7").unwrap();
        let second = IdentityFiles::open(folder.path(), &[]).unwrap();
        assert_eq!(first.authority(), second.authority());

        let read = Kubeconfig::read(&folder.path().join(KUBECONFIG)).unwrap();
        assert_eq!(read.address, "127.0.0.1:7");
        assert_eq!(read.authority, first.authority().as_bytes());
        assert_eq!(read.token, tokens::ADMIN);
    }
}
