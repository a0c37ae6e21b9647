//! Who asks: ServiceAccounts show a token, and the API says whose it is.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;

/// An answer is believed for so long; so long a token that was taken back still counts.
const BELIEVED: Duration = Duration::from_mins(1);
/// A refusal for less, since somebody may only have been granted something too late.
const REFUSED: Duration = Duration::from_secs(5);
/// No API takes longer to say whose a token is.
const LIMIT: Duration = Duration::from_secs(5);
/// So many tokens are remembered; there are hardly more than resolvers.
const REMEMBERED: usize = 1024;

/// Why somebody is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token was shown.
    #[error("show the token of a ServiceAccount: Authorization: Bearer <token>")]
    Missing,
    /// It is nobody's.
    #[error("the token is not valid")]
    Invalid,
    /// It is somebody else's.
    #[error("{0} may not ask for this")]
    Stranger(String),
    /// Nobody says whose it is.
    #[error("the API does not say whose the token is; ask again")]
    Unsaid,
}

impl Denied {
    /// Over HTTP.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Missing | Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::Stranger(_) => StatusCode::FORBIDDEN,
            Self::Unsaid => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Knows whose a token is.
pub trait Tokens: fmt::Debug + Send + Sync {
    /// The name of its user; nothing if it is nobody's.
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>>;
}

/// Lets those in who may ask.
#[derive(Debug, Clone)]
pub struct Door {
    tokens: Arc<dyn Tokens>,
    /// The names of users.
    welcome: Vec<String>,
    open: bool,
}

impl Door {
    /// Lets ServiceAccounts in, each as namespace and name.
    pub fn for_accounts<'a>(
        tokens: Arc<dyn Tokens>,
        accounts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let accounts = accounts.into_iter();
        let user = |(namespace, name)| format!("system:serviceaccount:{namespace}:{name}");
        Self {
            tokens,
            welcome: accounts.map(user).collect(),
            open: false,
        }
    }

    /// The same door, which lets anybody in if it stands open.
    pub fn standing_open(mut self, open: bool) -> Self {
        self.open = open;
        self
    }

    /// Whether whoever sent `headers` may come in.
    pub async fn pass(&self, headers: &HeaderMap) -> Result<(), Denied> {
        if self.open {
            return Ok(());
        }
        let token = shown(headers).ok_or(Denied::Missing)?;
        match self.tokens.owner(token).await? {
            None => Err(Denied::Invalid),
            Some(owner) if self.welcome.contains(&owner) => Ok(()),
            Some(owner) => Err(Denied::Stranger(owner)),
        }
    }
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Asks the API, and remembers what it said for a while.
pub struct Reviews {
    client: Client,
    clock: Clock,
    known: Mutex<HashMap<Vec<u8>, Known>>,
}

#[derive(Clone)]
struct Known {
    until: Uptime,
    owner: Option<String>,
}

impl Reviews {
    /// Asks the API at the other end of `client`.
    pub fn new(client: Client, clock: Clock) -> Self {
        let known = Mutex::default();
        Self {
            client,
            clock,
            known,
        }
    }

    fn remembered(&self, print: &[u8]) -> Option<Known> {
        let known = self.known.lock().get(print).cloned();
        known.filter(|known| self.clock.uptime() < known.until)
    }

    fn remember(&self, print: Vec<u8>, owner: Option<String>) {
        let now = self.clock.uptime();
        let until = now + if owner.is_some() { BELIEVED } else { REFUSED };
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.retain(|_, one| now < one.until);
        }
        // Whoever shows many that are nobody's is not to fill the memory.
        if known.len() < REMEMBERED {
            known.insert(print, Known { until, owner });
        }
    }

    async fn ask(&self, token: &str) -> Result<Option<String>, Denied> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        // A question in the shape of a create: nothing is kept, so anybody may ask it.
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let parameters = PostParams::default();
        let answer = self.clock.within(LIMIT, api.create(&parameters, &review));
        let answer = match answer.await {
            Some(Ok(answer)) => answer.status.unwrap_or_default(),
            Some(Err(error)) => {
                tracing::warn!(%error, "a token could not be reviewed");
                return Err(Denied::Unsaid);
            }
            None => return Err(Denied::Unsaid),
        };
        let valid = answer.authenticated == Some(true);
        let owner = answer.user.and_then(|user| user.username);
        Ok(owner.filter(|_| valid))
    }
}

impl Tokens for Reviews {
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        Box::pin(async move {
            // Not the token itself, so that it is in no dump of the memory.
            let print = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
            if let Some(known) = self.remembered(&print) {
                return Ok(known.owner);
            }
            let owner = self.ask(token).await?;
            self.remember(print, owner.clone());
            Ok(owner)
        })
    }
}

impl fmt::Debug for Reviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviews")
            .field("known", &self.known.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
