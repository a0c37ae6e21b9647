//! Authentication of HTTP callers: a caller sends the token of its ServiceAccount, and the API server
//! reviews it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;

/// How long a positive review is cached; a token that was revoked is still accepted for that long.
const ACCEPTED_TTL: Duration = Duration::from_mins(1);
/// How long a negative review is cached. Shorter, since an account may be created a moment after its
/// first call.
const REJECTED_TTL: Duration = Duration::from_secs(5);
/// The time within which the API server has to review a token.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of cached reviews. There is about one for each resolver.
const MAX_CACHED_REVIEWS: usize = 1024;

/// Why a call is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The request has no token.
    #[error("send the token of a ServiceAccount: Authorization: Bearer <token>")]
    Missing,
    /// The API server does not accept the token.
    #[error("the token is not valid")]
    Invalid,
    /// The token is valid, but its user may not call.
    #[error("{0} may not make this request")]
    Forbidden(String),
    /// The API server did not review the token.
    #[error("the API server did not review the token; try again")]
    ReviewFailed,
}

impl Denied {
    /// The HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::ReviewFailed => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Finds the user of a token.
pub trait TokenReviewer: fmt::Debug + Send + Sync {
    /// The name of the user; none if the token is not valid.
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>>;
}

/// Admits the callers that are in its list.
#[derive(Debug, Clone)]
pub struct Authenticator {
    reviewer: Arc<dyn TokenReviewer>,
    /// Names of users.
    allowed: Vec<String>,
    allow_unauthenticated: bool,
}

impl Authenticator {
    /// Admits ServiceAccounts, each given as namespace and name.
    pub fn for_service_accounts<'a>(
        reviewer: Arc<dyn TokenReviewer>,
        accounts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let accounts = accounts.into_iter();
        let user = |(namespace, name)| format!("system:serviceaccount:{namespace}:{name}");
        Self {
            reviewer,
            allowed: accounts.map(user).collect(),
            allow_unauthenticated: false,
        }
    }

    /// The same authenticator, which admits every caller if `allow` is set.
    pub fn allow_unauthenticated(mut self, allow: bool) -> Self {
        self.allow_unauthenticated = allow;
        self
    }

    /// Checks the caller of a request with these headers.
    pub async fn check(&self, headers: &HeaderMap) -> Result<(), Denied> {
        if self.allow_unauthenticated {
            return Ok(());
        }
        let token = bearer_token(headers).ok_or(Denied::Missing)?;
        match self.reviewer.username(token).await? {
            None => Err(Denied::Invalid),
            Some(user) if self.allowed.contains(&user) => Ok(()),
            Some(user) => Err(Denied::Forbidden(user)),
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Has the API server review tokens, and caches the results.
pub struct TokenReviews {
    client: Client,
    clock: Clock,
    cache: Mutex<HashMap<Vec<u8>, CachedReview>>,
}

#[derive(Clone)]
struct CachedReview {
    expires_at: Uptime,
    username: Option<String>,
}

impl TokenReviews {
    /// Reviews by the API server that `client` reaches.
    pub fn new(client: Client, clock: Clock) -> Self {
        let cache = Mutex::default();
        Self {
            client,
            clock,
            cache,
        }
    }

    fn cached(&self, digest: &[u8]) -> Option<CachedReview> {
        let cached = self.cache.lock().get(digest).cloned();
        cached.filter(|review| self.clock.uptime() < review.expires_at)
    }

    fn insert(&self, digest: Vec<u8>, username: Option<String>) {
        let now = self.clock.uptime();
        let ttl = if username.is_some() {
            ACCEPTED_TTL
        } else {
            REJECTED_TTL
        };
        let expires_at = now + ttl;
        let mut cache = self.cache.lock();
        if cache.len() >= MAX_CACHED_REVIEWS {
            cache.retain(|_, review| now < review.expires_at);
        }
        // A caller that sends many invalid tokens must not fill the memory.
        if cache.len() < MAX_CACHED_REVIEWS {
            let review = CachedReview {
                expires_at,
                username,
            };
            cache.insert(digest, review);
        }
    }

    async fn review(&self, token: &str) -> Result<Option<String>, Denied> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        // A query in the form of a create: the API server stores nothing, so no leadership is needed.
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let parameters = PostParams::default();
        let response = self
            .clock
            .within(REVIEW_TIMEOUT, api.create(&parameters, &review));
        let status = match response.await {
            Some(Ok(response)) => response.status.unwrap_or_default(),
            Some(Err(error)) => {
                tracing::warn!(%error, "a token could not be reviewed");
                return Err(Denied::ReviewFailed);
            }
            None => return Err(Denied::ReviewFailed),
        };
        let valid = status.authenticated == Some(true);
        let username = status.user.and_then(|user| user.username);
        Ok(username.filter(|_| valid))
    }
}

impl TokenReviewer for TokenReviews {
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        Box::pin(async move {
            // The cache has digests, so that no memory dump contains a token.
            let digest = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
            if let Some(review) = self.cached(&digest) {
                return Ok(review.username);
            }
            let username = self.review(token).await?;
            self.insert(digest, username.clone());
            Ok(username)
        })
    }
}

impl fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviews")
            .field("cached", &self.cache.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
