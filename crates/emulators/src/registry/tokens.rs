//! The token endpoint, and the tokens that it has given out.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, header};
use jiff::Timestamp;
use neap_kit::client::Body;
use parking_lot::Mutex;
use serde_json::json;

use super::{
    Answer, Registry,
    access::{Access, Action, Credentials, SERVICE, User, find_user, unauthorized},
    error::{ErrorCode, RegistryError},
    names::RepositoryName,
};

/// The time for which a token is valid.
const TOKEN_LIFETIME: Duration = Duration::from_mins(5);
/// The tokens that are remembered; the oldest is forgotten first.
const MAX_TOKENS: usize = 10_000;
const MAX_FORM: usize = 64 << 10;

/// The tokens that were given out.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<TokenState>);

#[derive(Debug, Default)]
struct TokenState {
    grants: BTreeMap<String, Grant>,
    /// Refresh tokens and their users.
    refresh: BTreeMap<String, String>,
    random: RandomState,
    count: u64,
}

#[derive(Debug, Clone)]
struct Grant {
    expires: Timestamp,
    allowed: Vec<(String, Action)>,
}

impl Tokens {
    /// Whether a token allows all of this; if not, the error of RFC 6750.
    pub(super) fn check(
        &self,
        token: &str,
        needed: &[(RepositoryName, Action)],
        now: Timestamp,
    ) -> Result<(), &'static str> {
        let state = self.0.lock();
        let grant = state.grants.get(token).filter(|grant| grant.expires > now);
        let grant = grant.ok_or("invalid_token")?;
        let allows = |(name, action): &(RepositoryName, Action)| {
            let mut allowed = grant.allowed.iter();
            allowed.any(|(repository, granted)| repository == name.as_str() && granted == action)
        };
        if needed.iter().all(allows) {
            Ok(())
        } else {
            Err("insufficient_scope")
        }
    }

    fn issue(&self, grant: Grant, now: Timestamp) -> String {
        let mut state = self.0.lock();
        state.grants.retain(|_, grant| grant.expires > now);
        if state.grants.len() >= MAX_TOKENS {
            let oldest = state.grants.iter().min_by_key(|(_, grant)| grant.expires);
            if let Some(oldest) = oldest.map(|(token, _)| token.clone()) {
                state.grants.remove(&oldest);
            }
        }
        let token = state.next_token();
        state.grants.insert(token.clone(), grant);
        token
    }

    fn refresh_token(&self, user: &str) -> String {
        let mut state = self.0.lock();
        if state.refresh.len() >= MAX_TOKENS {
            state.refresh.pop_first();
        }
        let token = state.next_token();
        state.refresh.insert(token.clone(), user.to_owned());
        token
    }

    fn refreshed_user(&self, token: &str) -> Option<String> {
        self.0.lock().refresh.get(token).cloned()
    }
}

impl TokenState {
    fn next_token(&mut self) -> String {
        self.count += 1;
        let half = |salt: u8| self.random.hash_one((self.count, salt));
        format!("{:016x}{:016x}", half(1), half(2))
    }
}

/// A request for a token.
#[derive(Debug, Default)]
struct TokenRequest {
    scopes: Vec<String>,
    service: Option<String>,
    credentials: Option<Credentials>,
    refresh_token: Option<String>,
    offline: bool,
}

impl TokenRequest {
    fn parse(query: &str) -> Self {
        let mut request = Self::default();
        let (mut name, mut password) = (None, None);
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "scope" => request
                    .scopes
                    .extend(value.split_whitespace().map(ToOwned::to_owned)),
                "service" => request.service = Some(value.into_owned()),
                "username" => name = Some(value.into_owned()),
                "password" => password = Some(value.into_owned()),
                "refresh_token" => request.refresh_token = Some(value.into_owned()),
                "access_type" => request.offline = value == "offline",
                "offline_token" => request.offline = value == "true",
                _ => {}
            }
        }
        if let (Some(name), Some(password)) = (name, password) {
            request.credentials = Some(Credentials::Basic(name, password));
        }
        request
    }
}

impl Registry {
    /// Gives out a token: to a GET with basic authentication, or to a POST with a form.
    pub(super) async fn token(&self, request: Request<Body>) -> Answer {
        let Access::Token(users) = &self.settings.access else {
            let message = "this registry gives out no tokens";
            return Err(RegistryError::new(ErrorCode::Unsupported, message));
        };
        let from_header = Credentials::of(request.headers());
        let asked = match *request.method() {
            Method::GET => TokenRequest::parse(request.uri().query().unwrap_or_default()),
            Method::POST => {
                let form = request.into_body().bytes(MAX_FORM).await;
                let invalid =
                    |_| RegistryError::new(ErrorCode::SizeInvalid, "the form is too long");
                TokenRequest::parse(&String::from_utf8_lossy(&form.map_err(invalid)?))
            }
            _ => {
                let message = "a token is asked for with GET or POST";
                return Err(RegistryError::new(ErrorCode::Unsupported, message));
            }
        };
        if asked.service.as_deref().is_some_and(|name| name != SERVICE) {
            let message = "this is not the token endpoint of that service";
            return Err(RegistryError::new(ErrorCode::Denied, message));
        }
        let user = self.token_user(users, &asked, &from_header)?;
        let now = self.clock.now();
        let allowed = granted(user, &asked.scopes);
        let expires = now.checked_add(TOKEN_LIFETIME).unwrap_or(Timestamp::MAX);
        let token = self.tokens.issue(Grant { expires, allowed }, now);
        let mut body = json!({
            "token": token,
            "access_token": token,
            "expires_in": TOKEN_LIFETIME.as_secs(),
            "issued_at": now.to_string(),
        });
        if asked.offline && !user.name.is_empty() {
            body["refresh_token"] = self.tokens.refresh_token(&user.name).into();
        }
        let mut response = Response::new(Body::from(body.to_string()));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn token_user<'a>(
        &self,
        users: &'a [User],
        asked: &TokenRequest,
        from_header: &Credentials,
    ) -> Result<&'a User, RegistryError> {
        let user = match &asked.refresh_token {
            Some(token) => {
                let name = self.tokens.refreshed_user(token);
                name.and_then(|name| users.iter().find(|user| user.name == name))
            }
            None => find_user(users, asked.credentials.as_ref().unwrap_or(from_header)),
        };
        user.ok_or_else(|| unauthorized(format!(r#"Basic realm="{SERVICE}""#)))
    }
}

/// Of what is asked for, what the user may do.
fn granted(user: &User, scopes: &[String]) -> Vec<(String, Action)> {
    let mut granted = Vec::new();
    for scope in scopes {
        let Some(rest) = scope.strip_prefix("repository:") else {
            continue;
        };
        let Some((name, actions)) = rest.rsplit_once(':') else {
            continue;
        };
        for action in actions.split(',').flat_map(Action::parse) {
            if user.may(action, name) {
                granted.push((name.to_owned(), action));
            }
        }
    }
    granted
}
