//! Who the server is and who may use it: a certificate authority, the serving certificate, and
//! the admin with a client certificate and a token.
//!
//! Everything is made once and then found again, so that a kubeconfig keeps working for as long
//! as the folder lives. The invariants: each file is replaced as a whole, certificate and key
//! together; the authority is written last, so a folder that has one has everything it signed.

mod admin;
mod authority;
mod files;
mod tls;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use neap_pocket::environment::{Clock, Environment};
use rustls::ServerConfig;

use self::{admin::Admin, authority::Pair, files::Files};
use super::server::Authenticate;
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
    #[error("cannot make a certificate")]
    Certificate(#[from] authority::Error),
    #[error("cannot use the certificates for TLS")]
    Tls(#[from] tls::Error),
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
            Error::Certificate(_) | Error::Tls(_) => (
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

    /// How the server speaks TLS.
    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, Error> {
        Ok(tls::server(&self.authority, &self.serving)?)
    }

    /// Tells the admin from everybody else.
    pub(super) fn authenticator(
        &self,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Authenticate>, Error> {
        let verifier = tls::client_verifier(&self.authority)?;
        Ok(Arc::new(Admin::new(&self.token, verifier, clock)))
    }
}

#[cfg(test)]
mod tests;
