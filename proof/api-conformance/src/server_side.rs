//! One of the two servers: its connection and its responses.

use anyhow::Result;
use http::{Method, header};
use neap_load::client::{Client, Connection, Watch};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::Value;

use crate::{
    call::{Body, Call, Captures, fill, fill_text},
    mask::Labels,
};

#[derive(Debug)]
pub struct Side {
    client: Client,
    connection: Option<Connection>,
    /// Its responses that later calls may refer to.
    pub captures: Captures,
    /// The labels of its own values in comparisons.
    pub labels: Labels,
    newest: u64,
}

/// The compared parts of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub code: u16,
    /// The `Content-Type` header.
    pub content_type: String,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// A string if it is not JSON.
    pub body: Value,
}

impl Answer {
    /// The response of a server that closed the connection.
    pub fn none() -> Self {
        Self {
            code: 0,
            content_type: String::new(),
            warnings: Vec::new(),
            body: Value::Null,
        }
    }

    /// Whether there was no response.
    pub fn is_none(&self) -> bool {
        self.code == 0
    }
}

impl Side {
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
            // A server may close an idle connection just as it is reused.
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

    /// How the revision of a written object compares with those before it.
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

    /// Opens a watch on its own connection.
    pub async fn watch(&self, path: &str) -> Result<Watch> {
        let path = fill_text(path, &self.captures);
        self.client.connect().await?.watch(&path).await
    }
}

/// Names may contain any letters; a path may not.
fn encoded(path: &str) -> String {
    const EXCLUDED: AsciiSet = percent_encoding::CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'`')
        .add(b'{')
        .add(b'}');
    utf8_percent_encode(path, &EXCLUDED).to_string()
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
