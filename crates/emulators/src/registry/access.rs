//! Who may do what.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, Method, Request, header};
use neap_kit::client::Body;
use subtle::ConstantTimeEq;

use super::{
    Registry,
    error::{ErrorCode, RegistryError},
    names::RepositoryName,
    route::Route,
};
use crate::{fault_book::fits, system::OverTls};

/// How callers identify themselves.
#[derive(Debug, Clone)]
pub enum Access {
    /// Not at all: everything is allowed.
    Open,
    /// With a name and a password in each request.
    Basic(Vec<User>),
    /// With a token of this registry's token endpoint, which takes a name and a password.
    Token(Vec<User>),
}

/// A user and what they may do.
#[derive(Debug, Clone)]
pub struct User {
    /// The name; empty for callers without credentials.
    pub name: String,
    password: Secret,
    /// The repositories that may be read; a star stands for any text.
    pub pull: Vec<String>,
    /// The repositories that may be changed as well.
    pub push: Vec<String>,
}

#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// What a request does with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Pull,
    Push,
    Delete,
}

impl User {
    /// A user without rights.
    pub fn new(name: &str, password: &str) -> Self {
        Self {
            name: name.to_owned(),
            password: Secret(password.to_owned()),
            pull: Vec::new(),
            push: Vec::new(),
        }
    }

    /// Callers without credentials, without rights.
    pub fn anonymous() -> Self {
        Self::new("", "")
    }

    /// May read the repositories of this pattern.
    pub fn pulls(mut self, pattern: &str) -> Self {
        self.pull.push(pattern.to_owned());
        self
    }

    /// May read and change the repositories of this pattern.
    pub fn pushes(mut self, pattern: &str) -> Self {
        self.push.push(pattern.to_owned());
        self
    }

    pub(super) fn may(&self, action: Action, repository: &str) -> bool {
        let covers = |patterns: &[String]| patterns.iter().any(|it| fits(it, repository));
        covers(&self.push) || (action == Action::Pull && covers(&self.pull))
    }
}

impl Action {
    pub(super) fn of(route: &Route, method: &Method) -> Self {
        if *method == Method::DELETE && !matches!(route, Route::Upload(..)) {
            Self::Delete
        } else if route.is_write(method) {
            Self::Push
        } else {
            Self::Pull
        }
    }

    pub(super) fn parse(text: &str) -> Vec<Self> {
        match text {
            "pull" => vec![Self::Pull],
            "push" => vec![Self::Push],
            "delete" => vec![Self::Delete],
            "*" => vec![Self::Pull, Self::Push, Self::Delete],
            _ => Vec::new(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Delete => "delete",
        }
    }
}

/// What a request says of its caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    None,
    Basic(String, String),
    Bearer(String),
    /// Something else, or nonsense.
    Invalid,
}

impl Credentials {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Self::None;
        };
        let Some((scheme, value)) = value.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return Self::Invalid;
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            return Self::Bearer(value.trim().to_owned());
        }
        let decoded = BASE64_STANDARD.decode(value.trim());
        let decoded = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded.as_deref().and_then(|text| text.split_once(':')) {
            Some((name, password)) if scheme.eq_ignore_ascii_case("basic") => {
                Self::Basic(name.to_owned(), password.to_owned())
            }
            _ => Self::Invalid,
        }
    }
}

/// The user with these credentials.
pub(super) fn find_user<'a>(users: &'a [User], credentials: &Credentials) -> Option<&'a User> {
    match credentials {
        Credentials::None => users.iter().find(|user| user.name.is_empty()),
        Credentials::Basic(name, password) if !name.is_empty() => users.iter().find(|user| {
            let same = user.password.0.as_bytes().ct_eq(password.as_bytes());
            user.name == *name && bool::from(same)
        }),
        _ => None,
    }
}

type Needed = (RepositoryName, Action);

impl Registry {
    /// Whether the caller may do all of this.
    pub(super) fn check_access(
        &self,
        needed: &[Needed],
        request: &Request<Body>,
    ) -> Result<(), RegistryError> {
        let credentials = Credentials::of(request.headers());
        match &self.settings.access {
            Access::Open => Ok(()),
            Access::Basic(users) => check_user(users, &credentials, needed),
            Access::Token(_) => self.check_token(&credentials, needed, request),
        }
    }

    /// Whether the caller may read a repository.
    pub(super) fn may_read(&self, name: &RepositoryName, request: &Request<Body>) -> bool {
        self.check_access(&[(name.clone(), Action::Pull)], request)
            .is_ok()
    }

    fn check_token(
        &self,
        credentials: &Credentials,
        needed: &[Needed],
        request: &Request<Body>,
    ) -> Result<(), RegistryError> {
        let problem = match credentials {
            Credentials::Bearer(token) => {
                match self.tokens.check(token, needed, self.clock.now()) {
                    Ok(()) => return Ok(()),
                    Err(problem) => Some(problem),
                }
            }
            _ => None,
        };
        let scope = scope(needed);
        let base = base_url(request);
        let mut parts = vec![format!(
            r#"Bearer realm="{base}/token",service="{SERVICE}""#
        )];
        if !scope.is_empty() {
            parts.push(format!(r#"scope="{scope}""#));
        }
        if let Some(problem) = problem {
            parts.push(format!(r#"error="{problem}""#));
        }
        Err(unauthorized(parts.join(",")))
    }
}

/// The name of this registry in token requests.
pub(super) const SERVICE: &str = "neaptide-registry";

fn check_user(
    users: &[User],
    credentials: &Credentials,
    needed: &[Needed],
) -> Result<(), RegistryError> {
    let challenge = || unauthorized(format!(r#"Basic realm="{SERVICE}""#));
    let Some(user) = find_user(users, credentials) else {
        return Err(challenge());
    };
    let refused = needed
        .iter()
        .find(|(name, action)| !user.may(*action, name.as_str()));
    match refused {
        None if needed.is_empty() && user.name.is_empty() => Err(challenge()),
        None => Ok(()),
        Some(_) if user.name.is_empty() => Err(challenge()),
        Some((name, action)) => {
            let message = format!("you may not {} this repository", action.name());
            Err(RegistryError::new(ErrorCode::Denied, message).about("name", name))
        }
    }
}

pub(super) fn unauthorized(challenge: String) -> RegistryError {
    RegistryError::new(ErrorCode::Unauthorized, "authentication is required")
        .with_header(header::WWW_AUTHENTICATE, challenge)
}

/// What a token has to allow, as token endpoints are asked for it.
fn scope(needed: &[Needed]) -> String {
    let scopes: Vec<_> = needed
        .iter()
        .map(|(name, action)| match action {
            Action::Push => format!("repository:{name}:pull,push"),
            action => format!("repository:{name}:{}", action.name()),
        })
        .collect();
    scopes.join(" ")
}

/// The address under which the caller reached this registry.
fn base_url(request: &Request<Body>) -> String {
    let uri = request.uri();
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or(host);
    let over_tls = request.extensions().get::<OverTls>().is_some();
    let scheme = match uri.scheme_str() {
        Some(scheme) => scheme,
        None if over_tls => "https",
        None => "http",
    };
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}
