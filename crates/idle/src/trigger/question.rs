//! What a Prometheus is asked, and as whom.

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

/// What the operator was told about Prometheus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Defaults {
    /// Whom to ask if a trigger does not say.
    pub address: Option<String>,
    /// What that one is shown as `Authorization`, and nobody else who is not in `origins`: whoever may
    /// write a trigger could have it sent to themselves.
    pub authorization: Option<HeaderValue>,
    /// Who else is shown it.
    pub origins: Origins,
}

impl Defaults {
    /// Whether there is a secret that nobody is shown.
    pub fn is_sent_to_nobody(&self) -> bool {
        let nobody = self.address.is_none() && self.origins == Origins::default();
        nobody && self.authorization.is_some()
    }
}

/// A query and who is asked. Two that are equal have one answer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Question {
    server: Server,
    query: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Server {
    /// Without a user, and without a slash at its end.
    address: String,
    origin: Origin,
    /// In the order of their names. Marked as secret, so that they are not shown.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// It is not shown the operator's secret, and has no other.
    withheld: bool,
}

/// The two questions of one trigger, and what the answer is held against.
#[derive(Debug, Clone, PartialEq)]
pub struct Questions {
    /// Was Prometheus there all the time?
    pub health: Question,
    /// How much is asked of the service?
    pub value: Question,
    /// Nobody asks while the value is below.
    pub threshold: f64,
}

impl Questions {
    /// What `trigger` asks, for a service with this cooldown.
    pub fn of(trigger: &Trigger, cooldown: Duration, defaults: &Defaults) -> Result<Self, Problem> {
        let metadata = trigger.metadata.as_ref().unwrap_or(&Value::Null);
        let trigger: PrometheusTrigger = serde_json::from_value(metadata::named(metadata))
            .map_err(|error| Problem::Metadata(field_only(&error)))?;
        if trigger.query.trim().is_empty() {
            return Err(Problem::NoQuery);
        }
        let server = Server::of(&trigger, defaults)?;
        let (filter, seconds) = (&trigger.uptime_filter, cooldown.as_secs());
        let health = format!("min_over_time((max(up{{{filter}}}) or vector(0))[{seconds}s:])");
        Ok(Self {
            health: Question {
                server: server.clone(),
                query: health,
            },
            value: Question {
                server,
                query: trigger.query,
            },
            threshold: trigger.threshold.0,
        })
    }
}

/// A message of serde may quote a value, and a value may be a secret; that of the threshold may not.
fn field_only(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.contains("threshold") {
        text
    } else {
        "one of query, serverAddress, threshold, uptimeFilter and headers is of another type than it should be".to_owned()
    }
}

impl Question {
    /// Where it is asked: a question is fair to each server apart.
    pub fn asked_of(&self) -> String {
        self.server.origin.to_string()
    }

    /// A problem that it met, with what to do about it if the server was not shown a secret.
    pub fn met(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Status { status, .. } if self.server.withheld && is_denial(status) => {
                let origin = self.asked_of();
                Problem::Withheld { status, origin }
            }
            other => other,
        }
    }

    /// The address of the question at `now`.
    pub fn address(&self, now: Timestamp) -> String {
        let (address, query) = (&self.server.address, escaped(&self.query));
        let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
        format!("{address}/api/v1/query?query={query}&time={second}")
    }

    /// What is sent with it.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.server.headers
    }
}

/// Says nothing that was told in secret.
impl fmt::Debug for Question {
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
    fn of(trigger: &PrometheusTrigger, defaults: &Defaults) -> Result<Self, Problem> {
        let own = trigger.server_address.as_deref();
        let own = own.filter(|address| !address.trim().is_empty());
        let address = own.or(defaults.address.as_deref());
        let (mut server, user) = Self::at(address.ok_or(Problem::NoAddress)?)?;
        let at_home = defaults.address.as_deref().is_some_and(|address| {
            Self::at(address).is_ok_and(|(home, _)| home.origin == server.origin)
        });
        let trusted = at_home || defaults.origins.include(&server.origin);
        if let Some(user) = user {
            server.set(AUTHORIZATION, user);
        } else if trusted && let Some(authorization) = &defaults.authorization {
            server.set(AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &trigger.headers {
            let unsendable = || Problem::Header(name.clone());
            let header: HeaderName = name.parse().map_err(|_| unsendable())?;
            let value = HeaderValue::from_str(value).map_err(|_| unsendable())?;
            if is_of_the_connection(&header) {
                return Err(unsendable());
            }
            server.set(header, value);
        }
        let shows = server.headers.iter().any(|(name, _)| name == AUTHORIZATION);
        server.withheld = !shows && defaults.authorization.is_some();
        server
            .headers
            .sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        Ok(server)
    }

    /// The server at `address`, and the user that the address names.
    fn at(address: &str) -> Result<(Self, Option<HeaderValue>), Problem> {
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
        Ok((server, user.and_then(|(user, _)| basic(user))))
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

/// With these in it a request would be another request.
fn is_of_the_connection(name: &HeaderName) -> bool {
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

/// How a user of an address is shown to a server.
fn basic(user: &str) -> Option<HeaderValue> {
    let user = unescaped(user);
    let user = if user.contains(&b':') {
        user
    } else {
        [user, b":".to_vec()].concat()
    };
    HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user))).ok()
}

/// As Go escapes a query, with `%20` for a space.
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
        // What follows a byte of a longer character is no text, and no user has such a name.
        rest = rest.get(read..).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests;
