//! The part of the kubeconfig of `neap up` that a client needs.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};

/// The address of the server, its certificate authority, and a token.
#[derive(Debug, Clone)]
pub(crate) struct Kubeconfig {
    /// Host and port.
    pub(crate) address: String,
    /// The certificate authority, in PEM.
    pub(crate) authority: Vec<u8>,
    pub(crate) token: String,
}

impl Kubeconfig {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is no kubeconfig of neap", path.display()))
    }

    /// Parses the file, which `neap` writes with one value per line.
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
            found.map(|value| value.trim_matches('"').to_owned())
        };
        let address = value("server")?.strip_prefix("https://")?.to_owned();
        Some(Self {
            address,
            authority: STANDARD.decode(value("certificate-authority-data")?).ok()?,
            token: value("token")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_names() {
        let text = "clusters:\n- name: neap\n  cluster:\n    server: \"https://[::1]:80\"\n    \
                    certificate-authority-data: YWI=\nusers:\n- user:\n    token: \"t\"\n";
        let config = Kubeconfig::parse(text).unwrap();
        assert_eq!(config.address, "[::1]:80");
        assert_eq!(config.authority, b"ab");
        assert_eq!(config.token, "t");
        assert!(Kubeconfig::parse("token: t").is_none());
    }
}
