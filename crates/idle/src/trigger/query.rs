//! The queries of triggers, their servers and credentials.

use std::{
    fmt::{self, Write},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderName, HeaderValue, Uri,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
    uri::Authority,
};
use jiff::Timestamp;
use serde_json::Value;

use super::{Origin, Origins, Problem, metadata};
use crate::api::{PrometheusTrigger, Trigger};

/// The operator's defaults for Prometheus triggers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrometheusDefaults {
    /// The server of triggers that name none.
    pub address: Option<String>,
    /// The `Authorization` header for that server and for those in `origins`. No other server receives it:
    /// a user who may write a trigger could have it sent to a server of their own.
    pub authorization: Option<HeaderValue>,
    /// Further servers that receive the header.
    pub origins: Origins,
}

impl PrometheusDefaults {
    /// Whether there is a header that no server receives.
    pub fn has_unused_authorization(&self) -> bool {
        let unused = self.address.is_none() && self.origins == Origins::default();
        unused && self.authorization.is_some()
    }
}

/// A query to a server. Two that are equal have the same result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Query {
    server: Server,
    query: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Server {
    /// Without a user, and without a trailing slash.
    address: String,
    origin: Origin,
    /// Ordered by name, and marked as sensitive, so that they are not shown.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The request has no credentials, although the operator has some for other servers.
    withheld: bool,
}

/// The two queries of one trigger, and the threshold for their result.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerQueries {
    /// Whether Prometheus was up during the whole cooldown.
    pub health: Query,
    /// The query of the trigger.
    pub value: Query,
    /// The service is idle while the value is below this.
    pub threshold: f64,
}

impl TriggerQueries {
    /// The queries of `trigger`, for a service with this cooldown.
    pub fn of(
        trigger: &Trigger,
        cooldown: Duration,
        defaults: &PrometheusDefaults,
    ) -> Result<Self, Problem> {
        let metadata = trigger.metadata.as_ref().unwrap_or(&Value::Null);
        let trigger: PrometheusTrigger = serde_json::from_value(metadata::normalize(metadata))
            .map_err(|error| Problem::Metadata(without_values(&error)))?;
        if trigger.query.trim().is_empty() {
            return Err(Problem::NoQuery);
        }
        let server = Server::of(&trigger, defaults)?;
        let (filter, seconds) = (&trigger.uptime_filter, cooldown.as_secs());
        let health = format!("min_over_time((max(up{{{filter}}}) or vector(0))[{seconds}s:])");
        Ok(Self {
            health: Query {
                server: server.clone(),
                query: health,
            },
            value: Query {
                server,
                query: trigger.query,
            },
            threshold: trigger.threshold.0,
        })
    }
}

/// A message of serde may quote a value, which may be a secret; only that of the threshold is passed on.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.contains("threshold") {
        text
    } else {
        "one of query, serverAddress, threshold, uptimeFilter and headers has the wrong type"
            .to_owned()
    }
}

impl Query {
    /// The problem of this query as the one for Prometheus' uptime, which no user has written.
    pub fn explain_uptime(&self, problem: Problem) -> Problem {
        match problem {
            Problem::NoValue => Problem::NoUptime {
                query: self.query.clone(),
            },
            other => other,
        }
    }

    /// The origin of its server, by which queries share capacity.
    pub fn server_origin(&self) -> String {
        self.server.origin.to_string()
    }

    /// The problem of this query, with a remedy if it was sent without credentials.
    pub fn explain(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Status { status, .. } if self.server.withheld && is_denial(status) => {
                let origin = self.server_origin();
                Problem::Withheld { status, origin }
            }
            other => other,
        }
    }

    /// The address of the request at `now`.
    pub fn address(&self, now: Timestamp) -> String {
        let (address, query) = (&self.server.address, escaped(&self.query));
        let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
        format!("{address}/api/v1/query?query={query}&time={second}")
    }

    /// The headers of the request.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.server.headers
    }
}

/// Shows no credentials.
impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.server.headers.iter().map(|(name, _)| name.as_str());
        f.debug_struct("Question")
            .field("address", &self.server.address)
            .field("query", &self.query)
            .field("headers", &names.collect::<Vec<_>>())
            .finish()
    }
}

impl Server {
    fn of(trigger: &PrometheusTrigger, defaults: &PrometheusDefaults) -> Result<Self, Problem> {
        let own = trigger.server_address.as_deref();
        let own = own.filter(|address| !address.trim().is_empty());
        let address = own.or(defaults.address.as_deref());
        let (mut server, user) = Self::parse(address.ok_or(Problem::NoAddress)?)?;
        let is_default = defaults.address.as_deref().is_some_and(|address| {
            Self::parse(address).is_ok_and(|(default, _)| default.origin == server.origin)
        });
        let trusted = is_default || defaults.origins.include(&server.origin);
        if let Some(user) = user {
            server.set(AUTHORIZATION, user);
        } else if trusted && let Some(authorization) = &defaults.authorization {
            server.set(AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &trigger.headers {
            let unsendable = || Problem::Header(name.clone());
            let header: HeaderName = name.parse().map_err(|_| unsendable())?;
            let value = HeaderValue::from_str(value).map_err(|_| unsendable())?;
            if is_hop_by_hop(&header) {
                return Err(unsendable());
            }
            server.set(header, value);
        }
        let authorized = server.headers.iter().any(|(name, _)| name == AUTHORIZATION);
        server.withheld = !authorized && defaults.authorization.is_some();
        server
            .headers
            .sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        Ok(server)
    }

    /// The server at `address`, and the credentials in the address.
    fn parse(address: &str) -> Result<(Self, Option<HeaderValue>), Problem> {
        let uri: Uri = address.trim().parse().map_err(|_| Problem::Address)?;
        let origin = Origin::of(&uri)?;
        let path = uri.path().trim_end_matches('/');
        let authority = uri.authority().map(Authority::as_str);
        let user = authority.and_then(|it| it.rsplit_once('@'));
        let server = Self {
            address: format!("{origin}{path}"),
            origin,
            headers: Vec::new(),
            withheld: false,
        };
        Ok((server, user.and_then(|(user, _)| basic_auth(user))))
    }

    fn set(&mut self, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
    }
}

fn is_denial(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// Headers that control the connection, and must not be set by a trigger.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ]
    .contains(name)
}

/// The `Authorization` header of the user in an address.
fn basic_auth(user: &str) -> Option<HeaderValue> {
    let user = unescaped(user);
    let user = if user.contains(&b':') {
        user
    } else {
        [user, b":".to_vec()].concat()
    };
    HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user))).ok()
}

/// Escapes a query as Go does, with `%20` for a space.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let hex = rest.strip_prefix('%').and_then(|rest| rest.get(..2));
        let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        let read = if escaped.is_some() { 3 } else { 1 };
        // A byte inside of a longer character cannot be skipped; no user name needs that.
        rest = rest.get(read..).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests;
