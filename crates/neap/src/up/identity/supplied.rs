//! Credentials supplied on the command line: a token table, and authorities that sign client
//! certificates.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use neap_pocket::identity::{TableError, Tokens};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};

use crate::{
    cli::UpOptions,
    exit::{Exit, Failure, chain},
};

/// The supplied credentials.
#[derive(Debug)]
pub(in crate::up) struct SuppliedCredentials {
    pub(super) tokens: Tokens,
    pub(super) authorities: RootCertStore,
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
        let authorities = options.client_ca_file.as_deref().map(authorities);
        Ok(Self {
            tokens: tokens.unwrap_or_default(),
            authorities: authorities
                .transpose()?
                .unwrap_or_else(RootCertStore::empty),
        })
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

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let pem = text(path)?;
    for (index, certificate) in CertificateDer::pem_slice_iter(pem.as_bytes()).enumerate() {
        let (path, number) = (path.to_owned(), index + 1);
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
    Ok(store)
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
