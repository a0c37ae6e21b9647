//! Credentials supplied on the command line: a token table, and authorities that sign client
//! certificates.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use neap_pocket::identity::{TableError, Tokens};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};

use super::authority;
use crate::{
    cli::UpOptions,
    exit::{Exit, Failure, chain},
};

/// The supplied credentials.
#[derive(Debug)]
pub(in crate::up) struct SuppliedCredentials {
    pub(super) tokens: Tokens,
    pub(super) authorities: RootCertStore,
    /// When the certificate of each authority begins to be valid, and which one it is.
    pub(super) valid_from: Vec<(String, Timestamp)>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::up) enum Error {
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}", path.display())]
    Table { path: PathBuf, source: TableError },
    #[error("{}: certificate {number} is invalid", path.display())]
    Pem {
        path: PathBuf,
        number: usize,
        source: pem::Error,
    },
    #[error("{}: certificate {number} is not a certificate authority", path.display())]
    Authority {
        path: PathBuf,
        number: usize,
        source: rustls::Error,
    },
    #[error("{} contains no certificate", path.display())]
    Empty { path: PathBuf },
}

impl SuppliedCredentials {
    /// Reads the files that the command line names.
    pub(in crate::up) fn read(options: &UpOptions) -> Result<Self, Error> {
        let tokens = options.token_auth_file.as_deref().map(tokens).transpose()?;
        let (authorities, valid_from) = match options.client_ca_file.as_deref() {
            Some(path) => authorities(path)?,
            None => (RootCertStore::empty(), Vec::new()),
        };
        Ok(Self {
            tokens: tokens.unwrap_or_default(),
            authorities,
            valid_from,
        })
    }

    /// The authorities that are not valid yet: the clock of this machine is behind, or theirs was ahead.
    pub(in crate::up) fn clock_problems(&self, now: Timestamp) -> Vec<String> {
        let early = self.valid_from.iter().filter(|(_, from)| *from > now);
        let problems = early.map(|(certificate, from)| {
            format!(
                "the {certificate} is valid from {from} on, and the clock of this machine shows {now}: clients whose certificates it signed may be refused; correct the clock"
            )
        });
        problems.collect()
    }
}

fn text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

fn tokens(path: &Path) -> Result<Tokens, Error> {
    Tokens::parse(&text(path)?).map_err(|source| Error::Table {
        path: path.to_owned(),
        source,
    })
}

/// The authorities in a file, and when each begins to be valid.
fn authorities(path: &Path) -> Result<(RootCertStore, Vec<(String, Timestamp)>), Error> {
    let mut store = RootCertStore::empty();
    let mut valid_from = Vec::new();
    let pem = text(path)?;
    for (index, certificate) in CertificateDer::pem_slice_iter(pem.as_bytes()).enumerate() {
        let (path, number) = (path.to_owned(), index + 1);
        if let Ok(certificate) = &certificate
            && let Ok(from) = authority::valid_from(certificate)
        {
            valid_from.push((format!("certificate {number} in {}", path.display()), from));
        }
        match certificate.map(|certificate| store.add(certificate)) {
            Ok(Ok(())) => {}
            Ok(Err(source)) => {
                return Err(Error::Authority {
                    path,
                    number,
                    source,
                });
            }
            Err(source) => {
                return Err(Error::Pem {
                    path,
                    number,
                    source,
                });
            }
        }
    }
    if store.is_empty() {
        let path = path.to_owned();
        return Err(Error::Empty { path });
    }
    Ok((store, valid_from))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = chain(&error);
        let (code, what, remedy) = match &error {
            Error::File { .. } => (
                "NT-UP-0015",
                "cannot read a file named on the command line",
                "check that the file exists and that you may read it",
            ),
            Error::Table { .. } => (
                "NT-UP-0016",
                "cannot use the token table (--token-auth-file)",
                "write one line per token: token,user,uid,\"group1,group2\"",
            ),
            Error::Pem { .. } | Error::Authority { .. } | Error::Empty { .. } => (
                "NT-UP-0017",
                "cannot use the client certificate authorities (--client-ca-file)",
                "use a file with one or more PEM certificates",
            ),
        };
        Self::new(code, Exit::of_file(&error), what, &why).remedy(remedy)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn an_authority_that_is_not_valid_yet_is_reported() {
        let day = Duration::from_hours(24);
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clients.pem");
        let pems = [now, now + day].map(|created| authority::create(created, day * 30).unwrap());
        fs::write(&file, pems.map(|pem| pem.certificate().to_owned()).concat()).unwrap();
        let arguments = ["neap", "up", "--client-ca-file", file.to_str().unwrap()];
        let Command::Up(options) = Cli::try_parse_from(arguments).unwrap().command else {
            panic!("it is the command up");
        };
        let supplied = SuppliedCredentials::read(&options).unwrap();
        assert_eq!(supplied.clock_problems(now + day), [""; 0]);
        let problems = supplied.clock_problems(now);
        assert!(
            matches!(problems.as_slice(), [one] if one.starts_with(&format!(
                "the certificate 2 in {} is valid from 2026-06-01T23:00:00Z on",
                file.display()
            ))),
            "{problems:?}"
        );
    }
}
