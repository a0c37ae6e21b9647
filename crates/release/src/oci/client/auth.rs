//! Who may ask for what: passwords, and tokens for which passwords are exchanged.

use std::{collections::BTreeMap, time::Duration};

use neap_kit::client::{RequestBuilder, percent_encoded};
use parking_lot::Mutex;
use serde::Deserialize;

use super::{DEADLINE, Error, Host, RegistryClient, What};
use crate::oci::{
    challenge::Challenge,
    credentials::Secret,
    reference::{Endpoint, ImageRef},
};

/// The longest answer of a token service.
const MAX_ANSWER: usize = 1 << 20;
/// A token that says nothing lives this long, by the specification.
const DEFAULT_LIFETIME: u64 = 60;
/// A token is renewed before it ends.
const MARGIN: Duration = Duration::from_secs(5);
/// Tokens that are kept.
const MAX_TOKENS: usize = 1000;

/// What a request wants to do, as a registry's scopes say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    actions: &'static str,
    /// A second repository to read from, for mounts.
    also: Option<String>,
}

impl Access {
    /// Reading.
    pub fn pull() -> Self {
        Self {
            actions: "pull",
            also: None,
        }
    }

    /// Reading and writing.
    pub fn push() -> Self {
        Self {
            actions: "pull,push",
            also: None,
        }
    }

    /// Writing, and reading another repository of the same registry.
    pub fn mount(from: &str) -> Self {
        Self {
            actions: "pull,push",
            also: Some(from.to_owned()),
        }
    }

    /// Deleting.
    pub fn delete() -> Self {
        Self {
            actions: "pull,push,delete",
            also: None,
        }
    }

    fn scopes(&self, repository: &str) -> Vec<String> {
        let own = format!("repository:{repository}:{}", self.actions);
        let also = self.also.iter().map(|it| format!("repository:{it}:pull"));
        std::iter::once(own).chain(also).collect()
    }
}

/// What a request carries.
#[derive(Clone)]
pub(super) enum Authorization {
    None,
    Basic { username: String, password: String },
    Bearer(String),
}

impl Authorization {
    pub(super) fn apply(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::None => request,
            Self::Basic { username, password } => request.basic(username, password),
            Self::Bearer(token) => request.bearer(token),
        }
    }
}

/// Tokens by host and scopes, with the uptime at which they end.
#[derive(Default)]
pub(super) struct TokenCache(Mutex<BTreeMap<TokenKey, Token>>);

/// A host, and scopes.
type TokenKey = (String, Vec<String>);
/// A token, and how long it lives or the uptime at which it ends.
type Token = (String, Duration);

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl TokenAnswer {
    /// The token and how long it lives.
    fn into_token(self, image: &ImageRef) -> Result<Token, Error> {
        let seconds = self.expires_in.unwrap_or(DEFAULT_LIFETIME).clamp(1, 86_400);
        let token = self.token.or(self.access_token);
        let token = token.filter(|token| !token.is_empty());
        let missing = || Error::protocol(image, What::Token, "its answer has no token");
        let token = token.ok_or_else(missing)?;
        Ok((token, Duration::from_secs(seconds)))
    }
}

/// The authorization for a registry that wants a password.
fn password(secret: Option<&Secret>) -> Authorization {
    match secret {
        Some(Secret::Basic { username, password }) => Authorization::Basic {
            username: username.clone(),
            password: password.clone(),
        },
        Some(Secret::RegistryToken(token) | Secret::IdentityToken(token)) => {
            Authorization::Bearer(token.clone())
        }
        None => Authorization::None,
    }
}

impl RegistryClient {
    /// The authorization for `access`. With `renew`, not one that is remembered: the registry refused it.
    pub(super) async fn authorization(
        &self,
        image: &ImageRef,
        endpoint: &Endpoint,
        host: &Host,
        challenge: &Challenge,
        access: &Access,
        renew: bool,
    ) -> Result<Authorization, Error> {
        let registry = if image.registry().is_empty() {
            "docker.io"
        } else {
            image.registry()
        };
        let secret = self.credentials.find(registry, image.repository());
        let Challenge::Bearer {
            realm,
            service,
            scope,
        } = challenge
        else {
            return Ok(password(secret));
        };
        if let Some(Secret::RegistryToken(token)) = secret {
            return Ok(Authorization::Bearer(token.clone()));
        }
        if host.scheme == "https" && !realm.starts_with("https://") && !self.options.insecure {
            let reason = format!("it wants credentials sent to {realm:?}, which is not encrypted");
            return Err(Error::protocol(image, What::Token, reason));
        }
        let mut scopes = access.scopes(&endpoint.repository);
        let key = (endpoint.host.clone(), scopes.clone());
        if renew && let Some(scope) = scope {
            // The registry knows best what it asks for; what this client needs beyond that stays.
            let asked = scope
                .split(' ')
                .filter(|it| !it.is_empty())
                .map(str::to_owned);
            scopes.extend(asked);
            scopes.sort();
            scopes.dedup();
        }
        let now = self.clock().uptime();
        if !renew {
            let known = self.shared.tokens.0.lock().get(&key).cloned();
            if let Some((token, _)) = known.filter(|(_, ends)| now < *ends) {
                return Ok(Authorization::Bearer(token));
            }
        }
        let service = service.as_deref();
        let answer = self.token(image, realm, service, &scopes, secret);
        let (token, lifetime) = answer.await?.into_token(image)?;
        let mut tokens = self.shared.tokens.0.lock();
        if tokens.len() >= MAX_TOKENS {
            tokens.clear();
        }
        let ends = now + lifetime.saturating_sub(MARGIN);
        tokens.insert(key, (token.clone(), ends));
        Ok(Authorization::Bearer(token))
    }

    async fn token(
        &self,
        image: &ImageRef,
        realm: &str,
        service: Option<&str>,
        scopes: &[String],
        secret: Option<&Secret>,
    ) -> Result<TokenAnswer, Error> {
        let request = if let Some(Secret::IdentityToken(token)) = secret {
            let scope = scopes.join(" ");
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", token),
                ("service", service.unwrap_or_default()),
                ("scope", &scope),
                ("client_id", "neaptide"),
            ];
            // Exchanging a refresh token twice gives two tokens, which harms no one.
            self.http.post(realm).form(&fields).idempotent(true)
        } else {
            let mut query: Vec<_> = scopes
                .iter()
                .map(|scope| format!("scope={}", percent_encoded(scope)))
                .collect();
            query.extend(service.map(|service| format!("service={}", percent_encoded(service))));
            let separator = if realm.contains('?') { '&' } else { '?' };
            let request = self
                .http
                .get(format!("{realm}{separator}{}", query.join("&")));
            if let Some(Secret::Basic { username, password }) = secret {
                request.basic(username, password)
            } else {
                request
            }
        };
        let answer = self
            .issue_whole(request.deadline(DEADLINE), MAX_ANSWER)
            .await
            .map_err(|error| Error::call(image, What::Token, error))?;
        let helper = self.credentials.helper(image.registry()).map(str::to_owned);
        let answer = answer
            .success()
            .map_err(|error| Error::answered(image, What::Token, error, helper))?;
        answer
            .json()
            .map_err(|error| Error::call(image, What::Token, error))
    }
}
