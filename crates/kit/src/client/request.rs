//! Requests, as callers put them together.

use std::{fmt, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use serde::Serialize;
use tower::BoxError;

use super::{
    Client,
    body::{Body, RequestBody},
    error::Error,
    redirect::Redirects,
    response::{Fetched, Response},
    retry::RetryPolicy,
};

/// What is sent, and under which conditions.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    pub(super) deadline: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) redirects: Redirects,
    pub(super) idempotent: bool,
    pub(super) any_certificate: bool,
    /// The most bytes of the response that an attempt reads before it has succeeded.
    pub(super) whole: Option<usize>,
}

/// A request that is being put together. What is wrong with it is reported when it is sent.
#[must_use = "a request does nothing unless it is sent"]
pub struct RequestBuilder {
    client: Client,
    call: Result<Call, Error>,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, method: Method, address: &str) -> Self {
        let call = parse(address).map(|uri| Call {
            idempotent: method.is_idempotent(),
            method,
            uri,
            headers: client.default_headers(),
            body: RequestBody::default(),
            deadline: client.deadline(),
            retry: client.retry_policy().clone(),
            redirects: Redirects::default(),
            any_certificate: false,
            whole: None,
        });
        Self { client, call }
    }

    fn with(mut self, change: impl FnOnce(&mut Call)) -> Self {
        if let Ok(call) = &mut self.call {
            change(call);
        }
        self
    }

    fn with_header(mut self, name: &str, value: &[u8], sensitive: bool) -> Self {
        let Ok(call) = &mut self.call else {
            return self;
        };
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value);
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(sensitive);
            call.headers.insert(name, value);
        } else {
            let url = redacted(&call.uri);
            self.call = Err(Error::Header { url });
        }
        self
    }

    /// Sets a header.
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.with_header(name.as_ref(), value.as_ref(), false)
    }

    /// Sets a header that identifies the caller. It is not sent to another host.
    pub fn secret_header(self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.with_header(name.as_ref(), value.as_ref(), true)
    }

    /// Authenticates with a token.
    pub fn bearer(self, token: &str) -> Self {
        let value = format!("Bearer {token}");
        self.secret_header(AUTHORIZATION.as_str(), value)
    }

    /// Authenticates with a user's name and password.
    pub fn basic(self, user: &str, password: &str) -> Self {
        let credentials = BASE64_STANDARD.encode(format!("{user}:{password}"));
        let value = format!("Basic {credentials}");
        self.secret_header(AUTHORIZATION.as_str(), value)
    }

    /// Sends these bytes; an attempt after the first sends them again.
    pub fn body(self, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        self.with(|call| call.body = RequestBody::Bytes(content))
    }

    /// Sends a value as JSON.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(content) => self
                .header(CONTENT_TYPE.as_str(), "application/json")
                .body(content),
            Err(error) => {
                if let Ok(call) = &self.call {
                    let url = redacted(&call.uri);
                    let source = error.into();
                    self.call = Err(Error::RequestBody { url, source });
                }
                self
            }
        }
    }

    /// Sends a form.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let mut form = String::new();
        for (name, value) in fields {
            if !form.is_empty() {
                form.push('&');
            }
            form.push_str(&percent_encoded(name));
            form.push('=');
            form.push_str(&percent_encoded(value));
        }
        self.header(CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded")
            .body(form)
    }

    /// Sends a body that is opened for each attempt, such as a file.
    pub fn reopened_body<F>(self, open: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<Body, BoxError>> + Send + Sync + 'static,
    {
        let body = RequestBody::Reopened(Arc::new(open));
        self.with(|call| call.body = body)
    }

    /// Sends a stream. It can be sent only once, so the request is not retried after it was begun.
    pub fn stream(self, body: Body) -> Self {
        self.with(|call| call.body = RequestBody::once(body))
    }

    /// The time that the call has until the head of its response, with all attempts, delays and
    /// redirects.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|call| call.deadline = deadline)
    }

    /// Another retry policy than the client's.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.with(|call| call.retry = policy)
    }

    /// Declares whether carrying out the call twice has the effect of once. Without this, the method
    /// decides.
    pub fn idempotent(self, idempotent: bool) -> Self {
        self.with(|call| call.idempotent = idempotent)
    }

    /// Which redirects are followed.
    pub fn redirects(self, redirects: Redirects) -> Self {
        self.with(|call| call.redirects = redirects)
    }

    /// Accepts any certificate of the server, as for a registry that a user calls insecure.
    pub fn insecure(self, accept_any_certificate: bool) -> Self {
        self.with(|call| call.any_certificate = accept_any_certificate)
    }

    /// Sends it. The response may have any status; its body is still to be read.
    pub async fn send(self) -> Result<Response, Error> {
        let call = self.call?;
        self.client.exchange(call).await
    }

    /// Sends it and reads the response as a whole. A response that breaks off is retried as one that
    /// does not come.
    pub async fn fetch(self, limit: usize) -> Result<Fetched, Error> {
        let mut call = self.call?;
        call.whole = Some(limit);
        let response = self.client.exchange(call).await?;
        let retry_after = response.retry_after();
        let (url, uri) = (response.url.clone(), response.uri.clone());
        let head = response.head.clone();
        let body = response.bytes(limit).await?;
        Ok(Fetched {
            status: head.status,
            headers: head.headers,
            body,
            uri,
            url,
            retry_after,
        })
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RequestBuilder");
        if let Ok(call) = &self.call {
            debug.field("method", &call.method);
            debug.field("url", &redacted(&call.uri));
        }
        debug.finish_non_exhaustive()
    }
}

fn parse(address: &str) -> Result<Uri, Error> {
    let problem = |problem| Error::Address {
        url: without_secrets(address),
        problem,
    };
    let uri: Uri = address
        .parse()
        .map_err(|_| problem("it is not a valid address"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(problem("it does not begin with http:// or https://"));
    }
    let authority = uri.authority().map(http::uri::Authority::as_str);
    match authority {
        None | Some("") => Err(problem("it names no host")),
        Some(authority) if authority.contains('@') => Err(problem(
            "it contains credentials, which belong in a header or a credentials file",
        )),
        Some(_) => Ok(uri),
    }
}

/// An address that may not be valid, without its query and credentials.
fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

/// An address without its query, which may carry secrets.
pub fn redacted(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{}", uri.path())
}

/// A text as part of a path or query, as RFC 3986 wants it.
pub fn percent_encoded(text: &str) -> String {
    use fmt::Write;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
