//! One request and its response.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Request as HttpRequest, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::{
    Failure,
    pattern::{Match, matches},
    scenario::{ExpectedResponse, Request},
    server::{Server, read, wrong},
    variables::Variables,
};

/// The user agent of scenarios; field managers are named after it.
const AGENT: &str = "scenario/1.0";
/// Bytes of a response that are shown in a failure.
const MAX_SHOWN_BYTES: usize = 4000;

/// A finished exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    asked: String,
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Exchange {
    pub(crate) async fn make(
        server: &Server,
        request: &Request,
        variables: &Variables,
    ) -> Result<Self, Failure> {
        let sent = fill(request, variables)?;
        let asked = format!("{} {}", sent.method(), sent.uri());
        let path = sent.uri().to_string();
        let posted = sent.method() == http::Method::POST;
        let response = server.send(sent).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = value(&headers, &read(response.into_body()).await?);
        if posted && status == StatusCode::CREATED {
            server.remember(&path, &body);
        }
        Ok(Self {
            asked,
            status,
            headers,
            body,
        })
    }

    /// The entry for a recording.
    pub(crate) fn entry(&self) -> Value {
        let headers = ["content-type", "warning", "allow", "retry-after"].map(|name| {
            let values = self.headers.get_all(name).iter();
            let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
            (name.to_owned(), Value::from(values))
        });
        json!({
            "asked": self.asked,
            "status": self.status.as_u16(),
            "headers": Value::from_iter(headers),
            "body": self.body,
        })
    }

    /// The variables after this response, and all differences.
    pub(crate) fn check(
        &self,
        answer: &ExpectedResponse,
        variables: &Variables,
    ) -> (Variables, Result<(), Failure>) {
        let mut learned = variables.clone();
        let mut differences = Vec::new();
        if self.status.as_u16() != answer.code {
            differences.push(format!(
                "status: expected {}, got {}",
                answer.code, self.status
            ));
        }
        if let Some(reason) = &answer.reason
            && self.body["reason"] != reason.as_str()
        {
            differences.push(format!(
                "reason: expected {reason}, got {}",
                self.body["reason"]
            ));
        }
        for (name, pattern) in &answer.headers {
            differences.extend(self.header(name, pattern, &mut learned));
        }
        if let Some(pattern) = &answer.body {
            let mut matching = Match::new(learned);
            matching.value("", pattern, &self.body);
            differences.extend(matching.differences);
            learned = matching.variables;
        }
        (learned, self.verdict(&differences))
    }

    fn verdict(&self, differences: &[String]) -> Result<(), Failure> {
        if differences.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}\n  {}\n  it answered {} {}",
            self.asked,
            differences.join("\n  "),
            self.status,
            shown(&self.body)
        )))
    }

    fn header(&self, name: &str, pattern: &str, variables: &mut Variables) -> Option<String> {
        let found: Vec<&str> = self
            .headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        if pattern == "~absent" {
            return (!found.is_empty())
                .then(|| format!("header {name}: should be absent, is {found:?}"));
        }
        let expected = Value::from(pattern);
        for value in &found {
            if let Some(learned) = matches(&expected, &Value::from(*value), variables) {
                *variables = learned;
                return None;
            }
        }
        Some(format!("header {name}: expected {pattern}, got {found:?}"))
    }
}

/// The request with its variables replaced.
pub(crate) fn fill(request: &Request, variables: &Variables) -> Result<HttpRequest<Body>, Failure> {
    let body = variables.fill_body(&request.body)?;
    let mut built = HttpRequest::builder()
        .method(request.method.as_str())
        .uri(variables.fill(&request.path)?);
    let named = |name: &str| request.headers.iter().any(|(header, _)| header == name);
    if !named("user-agent") {
        built = built.header("user-agent", AGENT);
    }
    if !body.is_empty() && !named("content-type") {
        let json = body.starts_with(['{', '[']);
        let kind = if json {
            "application/json"
        } else {
            "application/yaml"
        };
        built = built.header("content-type", kind);
    }
    for (name, value) in &request.headers {
        built = built.header(name, variables.fill(value)?);
    }
    let bytes = if request.encoded {
        let compact: String = body.split_whitespace().collect();
        STANDARD.decode(compact).map_err(wrong)?
    } else {
        body.into_bytes()
    };
    built.body(Body::from(bytes)).map_err(wrong)
}

/// A body as a value: JSON or YAML if it is that, else text without its last line end.
fn value(headers: &HeaderMap, body: &Bytes) -> Value {
    let text = String::from_utf8_lossy(body);
    let kind = headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    let structured = if kind.is_some_and(|kind| kind.contains("yaml")) {
        serde_saphyr::from_str(&text).ok()
    } else {
        serde_json::from_str(&text)
            .ok()
            .filter(|value: &Value| value.is_object())
    };
    structured.unwrap_or_else(|| Value::from(text.trim_end()))
}

fn shown(body: &Value) -> String {
    let mut text = match body {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    if let Some((cut, _)) = text.char_indices().nth(MAX_SHOWN_BYTES) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
