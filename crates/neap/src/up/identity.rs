//! The credentials of a server: its certificate authority, the serving certificate, the client
//! certificate and token of the admin, and the key that signs tokens of service accounts.
//!
//! They are created once and then loaded, so that a kubeconfig stays valid for as long as the folder
//! exists. Invariants: each file is replaced as a whole, certificate and key together; the authority is
//! written last, so a folder with an authority has everything that it signed.

mod authority;
mod files;
mod supplied;
mod tls;
mod validity;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use neap_pocket::{
    environment::{Clock, Environment},
    identity::{Authenticate, Certificates, Credentials, KeyError, SigningKey, User},
};
use rustls::{RootCertStore, ServerConfig, server::VerifierBuilderError};

pub(super) use self::supplied::SuppliedCredentials;
pub(crate) use self::validity::clock_problems;
use self::{
    authority::{ADMIN, CertificateWithKey},
    files::IdentityFiles,
};
use crate::exit::{Exit, Failure, chain};

const DAY: Duration = Duration::from_hours(24);
/// Validity of the authority and of the admin's certificate, which a kubeconfig contains.
const CA_VALIDITY: Duration = DAY.saturating_mul(3650);
/// Validity of the serving certificate, which can be replaced at any start.
const SERVING_VALIDITY: Duration = DAY.saturating_mul(365);
/// Remaining validity below which a certificate is renewed.
const RENEW_BEFORE: Duration = DAY.saturating_mul(30);

/// The credentials of one server.
pub(super) struct Identity {
    authority: CertificateWithKey,
    serving: CertificateWithKey,
    admin: CertificateWithKey,
    token: String,
    signing_key: SigningKey,
    origin: Origin,
}

/// Whether the credentials were loaded or created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Loaded,
    Renewed,
    /// The token file was missing; the token in earlier kubeconfigs is no longer valid.
    NewToken,
    Created,
}

impl Origin {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Loaded => "CA, admin token and client certificate as before",
            Self::Renewed => "CA and admin token as before, certificates renewed",
            Self::NewToken => "CA as before, new admin token: the old one was missing",
            Self::Created => "new CA, admin token and client certificate",
        }
    }
}

/// Why the credentials cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        source: authority::Error,
    },
    #[error("{} is damaged", path.display())]
    DamagedKey { path: PathBuf, source: KeyError },
    #[error("cannot create a certificate")]
    Certificate(#[from] authority::Error),
    #[error("cannot use the certificates for TLS")]
    Tls(#[from] tls::Error),
    #[error("the client certificate authorities are invalid")]
    Clients(#[from] VerifierBuilderError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = chain(&error);
        let (code, exit, remedy) = match &error {
            Error::File { .. } => (
                "NT-UP-0005",
                Exit::Refused,
                "check that the folder and its files belong to you".to_owned(),
            ),
            Error::Damaged { path, .. } => (
                "NT-UP-0006",
                Exit::Refused,
                format!(
                    "restore it, or remove the folder {} to create new credentials; existing \
                     kubeconfigs become invalid",
                    path.parent().unwrap_or(path).display()
                ),
            ),
            Error::DamagedKey { path, .. } => (
                "NT-UP-0006",
                Exit::Refused,
                format!(
                    "restore it, or remove {} to create a new key; existing tokens of service \
                     accounts become invalid",
                    path.display()
                ),
            ),
            Error::Certificate(_) | Error::Tls(_) | Error::Clients(_) => (
                "NT-UP-0007",
                Exit::Failed,
                "remove the folder identity in the data folder to create new credentials"
                    .to_owned(),
            ),
        };
        Self::new(code, exit, "cannot set up the credentials", &why).remedy(remedy)
    }
}

impl Identity {
    /// Loads the credentials from `folder`, and creates what is missing or about to expire; without a
    /// folder they exist in memory only. `names` are the hosts and addresses that the serving
    /// certificate must cover.
    pub(super) fn load_or_create(
        folder: Option<&Path>,
        names: &[String],
        environment: &Environment,
    ) -> Result<Self, Error> {
        IdentityFiles::at(folder, environment.clock.now()).identity(names, environment)
    }

    /// The certificate of the authority, PEM.
    pub(super) fn authority(&self) -> &str {
        self.authority.certificate()
    }

    /// The admin's client certificate and its key, PEM.
    pub(super) fn admin(&self) -> (&str, &str) {
        (self.admin.certificate(), self.admin.key())
    }

    /// The admin's bearer token.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// The key that signs tokens of service accounts.
    pub(super) fn signing_key(&self) -> SigningKey {
        self.signing_key.clone()
    }

    /// The TLS configuration of the server. It accepts client certificates of its own authority and of
    /// the supplied ones.
    pub(super) fn tls(&self, supplied: &SuppliedCredentials) -> Result<Arc<ServerConfig>, Error> {
        Ok(tls::server(
            self.client_authorities(supplied)?,
            &self.serving,
        )?)
    }

    /// Authenticates the admin and the supplied users.
    pub(super) fn authenticator(
        &self,
        supplied: &SuppliedCredentials,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Authenticate>, Error> {
        let mut tokens = supplied.tokens.clone();
        let admin = User {
            name: ADMIN.0.to_owned(),
            groups: vec![ADMIN.1.to_owned()],
            ..User::default()
        };
        tokens.add(&self.token, admin);
        Ok(Arc::new(Credentials {
            certificates: Some(Certificates::signed_by(
                self.client_authorities(supplied)?,
                clock,
            )?),
            tokens,
        }))
    }

    /// The authorities that sign client certificates.
    fn client_authorities(&self, supplied: &SuppliedCredentials) -> Result<RootCertStore, Error> {
        let mut roots = supplied.authorities.clone();
        let own = self.authority.certificate_der()?;
        roots.add(own).map_err(tls::Error::Refused)?;
        Ok(roots)
    }
}

#[cfg(test)]
mod tests;
