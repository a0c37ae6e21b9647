//! Where a redirect leads, and what may be sent there: pure.

use http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION},
    uri::{PathAndQuery, Scheme},
};

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// None: the caller sees the redirect.
    Return,
    /// At most this many in a row.
    Follow(u8),
}

impl Default for Redirects {
    fn default() -> Self {
        Self::Follow(5)
    }
}

/// A request that is to be sent to another place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hop {
    pub(super) uri: Uri,
    pub(super) method: Method,
    /// Whether the body is sent again.
    pub(super) keeps_body: bool,
    /// Whether the place belongs to another server, which gets no credentials.
    pub(super) leaves_origin: bool,
}

/// What to do with a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RedirectDecision {
    /// It is no redirect, or the caller wants to see it.
    Return,
    Follow(Hop),
    Refuse(RedirectRefusal),
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectRefusal {
    /// One led to the next too often.
    #[error("there are too many of them in a row")]
    TooMany,
    /// It names no place, or one that is no HTTP address.
    #[error("it leads to an address that is not valid")]
    BadLocation,
    /// It would leave an encrypted connection.
    #[error("it leads from https:// to http://")]
    Unencrypted,
}

/// What to do with the response to a request for `uri`, the redirect number `followed` + 1.
pub(super) fn decide(
    policy: Redirects,
    followed: u8,
    (method, uri): (&Method, &Uri),
    status: StatusCode,
    headers: &HeaderMap,
) -> RedirectDecision {
    let Redirects::Follow(max) = policy else {
        return RedirectDecision::Return;
    };
    let (method, keeps_body) = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if *method == Method::POST => {
            (Method::GET, false)
        }
        StatusCode::SEE_OTHER if *method != Method::HEAD => (Method::GET, false),
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => (method.clone(), true),
        _ => return RedirectDecision::Return,
    };
    let Some(location) = headers.get(LOCATION) else {
        return RedirectDecision::Return;
    };
    if followed >= max {
        return RedirectDecision::Refuse(RedirectRefusal::TooMany);
    }
    let location = location.to_str().ok();
    let Some(target) = location.and_then(|location| resolve(uri, location)) else {
        return RedirectDecision::Refuse(RedirectRefusal::BadLocation);
    };
    if uri.scheme() == Some(&Scheme::HTTPS) && target.scheme() != Some(&Scheme::HTTPS) {
        return RedirectDecision::Refuse(RedirectRefusal::Unencrypted);
    }
    RedirectDecision::Follow(Hop {
        leaves_origin: origin(uri) != origin(&target),
        uri: target,
        method,
        keeps_body,
    })
}

/// Removes everything that identifies the caller.
pub(super) fn strip_credentials(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    let sensitive: Vec<_> = headers
        .iter()
        .filter(|(_, value)| value.is_sensitive())
        .map(|(name, _)| name.clone())
        .collect();
    for name in sensitive {
        headers.remove(name);
    }
}

/// The address that `location` means in the response to a request for `base`.
pub fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    if location.starts_with("//") {
        return format!("{}:{location}", base.scheme_str()?).parse().ok();
    }
    let has_scheme = location
        .split_once("://")
        .is_some_and(|(scheme, _)| !scheme.contains(['/', '?']));
    if has_scheme {
        let uri: Uri = location.parse().ok()?;
        let http = matches!(uri.scheme_str(), Some("http" | "https"));
        return (http && uri.host().is_some()).then_some(uri);
    }
    let path = if location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{}{location}", base.path())
    } else {
        let folder = base
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{folder}/{location}")
    };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// Scheme, host and port.
fn origin(uri: &Uri) -> (Option<String>, Option<String>, Option<u16>) {
    let default_port = match uri.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    };
    (
        uri.scheme_str().map(str::to_ascii_lowercase),
        uri.host().map(str::to_ascii_lowercase),
        uri.port_u16().or(default_port),
    )
}
