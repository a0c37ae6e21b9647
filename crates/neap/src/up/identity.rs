//! Who the server is and who may use it: a certificate authority, the serving certificate, the
//! admin with a client certificate and a token, and the key that signs tokens of service accounts.
//!
//! Everything is made once and then found again, so that a kubeconfig keeps working for as long
//! as the folder lives. The invariants: each file is replaced as a whole, certificate and key
//! together; the authority is written last, so a folder that has one has everything it signed.

mod authority;
mod files;
mod given;
mod tls;

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

pub(super) use self::given::Given;
use self::{
    authority::{ADMIN, Pair},
    files::Files,
};
use crate::exit::{Exit, Failure, chain};

const DAY: Duration = Duration::from_hours(24);
/// The authority and the admin's certificate; these are what a kubeconfig holds.
const LONG: Duration = DAY.saturating_mul(3650);
/// The serving certificate; clients find a new one at the next start without noticing.
const SHORT: Duration = DAY.saturating_mul(365);
/// A certificate that ends sooner than this is made anew.
const RENEW_BEFORE: Duration = DAY.saturating_mul(30);

/// The credentials of one server.
pub(super) struct Identity {
    authority: Pair,
    serving: Pair,
    admin: Pair,
    token: String,
    signing_key: SigningKey,
    origin: Origin,
}

/// Where the credentials came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Found,
    Renewed,
    /// The token was lost; kubeconfigs written before hold one that no longer works.
    NewToken,
    Made,
}

impl Origin {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Found => "CA, admin token and client certificate as before",
            Self::Renewed => "CA and admin token as before, certificates renewed",
            Self::NewToken => "CA as before, new admin token: the old one was missing",
            Self::Made => "new CA, admin token and client certificate",
        }
    }
}

/// Why there are no credentials.
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
    #[error("cannot make a certificate")]
    Certificate(#[from] authority::Error),
    #[error("cannot use the certificates for TLS")]
    Tls(#[from] tls::Error),
    #[error("the authorities of clients are refused")]
    Clients(#[from] VerifierBuilderError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = chain(&error);
        let (code, exit, remedy) = match &error {
            Error::File { .. } => (
                "NT-UP-0005",
                Exit::Refused,
                "see that the folder and the files in it belong to you".to_owned(),
            ),
            Error::Damaged { path, .. } => (
                "NT-UP-0006",
                Exit::Refused,
                format!(
                    "restore it, or remove the folder {} to have new credentials made; kubeconfigs \
                     written before then stop working",
                    path.parent().unwrap_or(path).display()
                ),
            ),
            Error::DamagedKey { path, .. } => (
                "NT-UP-0006",
                Exit::Refused,
                format!(
                    "restore it, or remove {} to have a new key made; tokens of service accounts \
                     made before then stop working",
                    path.display()
                ),
            ),
            Error::Certificate(_) | Error::Tls(_) | Error::Clients(_) => (
                "NT-UP-0007",
                Exit::Failed,
                "remove the folder identity in the data folder to have new ones made".to_owned(),
            ),
        };
        Self::new(code, exit, "cannot set up the credentials", &why).remedy(remedy)
    }
}

impl Identity {
    /// Finds the credentials in `folder`, and makes what is missing or about to end; without a
    /// folder, they live in memory alone. `names` are the hosts and addresses the serving
    /// certificate has to hold.
    pub(super) fn load_or_create(
        folder: Option<&Path>,
        names: &[String],
        environment: &Environment,
    ) -> Result<Self, Error> {
        Files::at(folder, environment.clock.now()).identity(names, environment)
    }

    /// The authority's certificate, PEM.
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

    /// Signs tokens of service accounts.
    pub(super) fn signing_key(&self) -> SigningKey {
        self.signing_key.clone()
    }

    /// How the server speaks TLS, to clients of its own authority and of those that were given.
    pub(super) fn tls(&self, given: &Given) -> Result<Arc<ServerConfig>, Error> {
        Ok(tls::server(self.clients(given)?, &self.serving)?)
    }

    /// Knows the admin, and all who were given.
    pub(super) fn authenticator(
        &self,
        given: &Given,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Authenticate>, Error> {
        let mut tokens = given.tokens.clone();
        let admin = User {
            name: ADMIN.0.to_owned(),
            groups: vec![ADMIN.1.to_owned()],
            ..User::default()
        };
        tokens.add(&self.token, admin);
        Ok(Arc::new(Credentials {
            certificates: Some(Certificates::signed_by(self.clients(given)?, clock)?),
            tokens,
        }))
    }

    /// The authorities whose certificates say who a client is.
    fn clients(&self, given: &Given) -> Result<RootCertStore, Error> {
        let mut roots = given.authorities.clone();
        let own = self.authority.certificate_der()?;
        roots.add(own).map_err(tls::Error::Refused)?;
        Ok(roots)
    }
}

#[cfg(test)]
mod tests;
