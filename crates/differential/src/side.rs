//! One of the two servers: a connection to it and what it answered.

use anyhow::Result;
use http::{Method, header};
use neap_load::client::{Client, Connection, Watch};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::Value;

use crate::{
    call::{Body, Call, Captures, fill, fill_text},
    mask::Labels,
};

/// A server and what it said so far.
#[derive(Debug)]
pub struct Side {
    client: Client,
    connection: Option<Connection>,
    /// Its answers that later calls may name.
    pub captures: Captures,
    /// What its own choices are called in comparisons.
    pub labels: Labels,
    newest: u64,
}

/// What a server answered, as far as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The `Content-Type` header.
    pub content_type: String,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// The body; a string if it is not JSON.
    pub body: Value,
}

impl Answer {
    /// What a server said that went away.
    pub fn none() -> Self {
        Self {
            code: 0,
            content_type: String::new(),
            warnings: Vec::new(),
            body: Value::Null,
        }
    }

    /// Whether nothing was said.
    pub fn is_none(&self) -> bool {
        self.code == 0
    }
}

impl Side {
    /// A server that has been asked nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
            captures: Captures::new(),
            labels: Labels::default(),
            newest: 0,
        }
    }

    /// Sends a call with this server's values filled in.
    pub async fn send(&mut self, call: &Call) -> Result<Answer> {
        let used = self.connection.is_some();
        match self.send_once(call).await {
            // A server may close a connection that has been idle just as it is used again.
            Err(_) if used => self.send_once(call).await,
            answer => answer,
        }
    }

    async fn send_once(&mut self, call: &Call) -> Result<Answer> {
        let (request, body) = self.request(call)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await?,
        };
        let response = connection.exchange(request, body).await?;
        let closes = response.headers().get(header::CONNECTION);
        if closes.is_none_or(|word| word != "close") {
            self.connection = Some(connection);
        }
        Ok(read(&response))
    }

    fn request(&self, call: &Call) -> Result<(http::request::Builder, String)> {
        let path = fill_text(&call.path, &self.captures);
        let body = match &call.body {
            Body::None => String::new(),
            Body::Text(text) => fill_text(text, &self.captures),
            Body::Json(value) => fill(value, &self.captures).unwrap_or_default().to_string(),
        };
        let mut request = http::Request::builder()
            .method(Method::from_bytes(call.method.as_bytes())?)
            .uri(encoded(&path))
            .header(header::ACCEPT, &call.accept)
            .header(header::USER_AGENT, "differential");
        if !call.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, &call.content_type);
        }
        Ok((request, body))
    }

    /// How the revision of an object that was written compares with those before it.
    pub fn moved(&mut self, object: &Value) -> &'static str {
        let revision = object["metadata"]["resourceVersion"].as_str();
        let Some(revision) = revision.and_then(|text| text.parse::<u64>().ok()) else {
            return "no revision";
        };
        if revision > self.newest {
            self.newest = revision;
            return "newer than all";
        }
        "as it was"
    }

    /// Opens a watch on a connection of its own.
    pub async fn watch(&self, path: &str) -> Result<Watch> {
        let path = fill_text(path, &self.captures);
        self.client.connect().await?.watch(&path).await
    }
}

/// Names may have any letters; a path may not.
fn encoded(path: &str) -> String {
    const APART: AsciiSet = percent_encoding::CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'`')
        .add(b'{')
        .add(b'}');
    utf8_percent_encode(path, &APART).to_string()
}

fn read(response: &http::Response<bytes::Bytes>) -> Answer {
    let headers = response.headers();
    let texts = |name| {
        let all = headers.get_all(name).iter();
        all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let body = response.body();
    Answer {
        code: response.status().as_u16(),
        content_type: texts(header::CONTENT_TYPE).next().unwrap_or_default(),
        warnings: texts(header::WARNING).collect(),
        body: serde_json::from_slice(body)
            .unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into()),
    }
}
