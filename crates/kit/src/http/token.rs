//! Callers that present a bearer token, recognised by the API server.

use std::{collections::HashMap, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;

use crate::clock::{Clock, Uptime};

/// How long an answer of the API server is used again.
const CACHE_TIME: Duration = Duration::from_secs(30);
/// The maximum number of answers that are kept.
const CACHE_SIZE: usize = 1024;

/// Why a caller was not recognised.
#[derive(Debug, thiserror::Error)]
pub enum BearerError {
    /// The request has no bearer token.
    #[error("the request has no bearer token")]
    Missing,
    /// The API server does not accept the token.
    #[error("the token is not accepted")]
    Refused,
    /// The API server did not answer.
    #[error("the API server could not be asked about the token")]
    Unreachable(#[source] Box<kube::Error>),
}

/// Who a caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    /// The name of the user.
    pub name: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

type Answers = HashMap<Vec<u8>, (Uptime, Option<UserInfo>)>;

/// Asks the API server whose tokens are presented. Cheap to clone.
#[derive(Clone)]
pub struct TokenReviews {
    client: Client,
    audiences: Vec<String>,
    clock: Clock,
    answers: Arc<Mutex<Answers>>,
}

impl TokenReviews {
    /// Accepts tokens for one of these audiences; with none, for the API server itself.
    pub fn new(client: Client, audiences: Vec<String>, clock: Clock) -> Self {
        Self {
            client,
            audiences,
            clock,
            answers: Arc::default(),
        }
    }

    /// The caller that presents the token in `headers`.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<UserInfo, BearerError> {
        let token = bearer(headers).ok_or(BearerError::Missing)?;
        // A digest, so that no token is kept.
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let digest = digest.as_ref().to_vec();
        let now = self.clock.uptime();
        let cached = self.answers.lock().get(&digest).cloned();
        let user = match cached {
            Some((at, user)) if now < at + CACHE_TIME => user,
            _ => {
                let user = self.review(token).await?;
                self.keep(digest, user.clone(), now);
                user
            }
        };
        user.ok_or(BearerError::Refused)
    }

    fn keep(&self, digest: Vec<u8>, user: Option<UserInfo>, now: Uptime) {
        let mut answers = self.answers.lock();
        if answers.len() >= CACHE_SIZE {
            answers.retain(|_, (at, _)| now < *at + CACHE_TIME);
        }
        if answers.len() < CACHE_SIZE {
            answers.insert(digest, (now, user));
        }
    }

    async fn review(&self, token: &str) -> Result<Option<UserInfo>, BearerError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: (!self.audiences.is_empty()).then(|| self.audiences.clone()),
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| BearerError::Unreachable(Box::new(error)))?;
        let status = answer.status.unwrap_or_default();
        let user = status.user.unwrap_or_default();
        Ok(status.authenticated.unwrap_or_default().then(|| UserInfo {
            name: user.username.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
        }))
    }
}

impl std::fmt::Debug for TokenReviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenReviews").finish_non_exhaustive()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
