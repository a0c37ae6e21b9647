//! What is asked and answered.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use neap_kit::telemetry::Pages;
use serde::{Serialize, de::DeserializeOwned};

use crate::operator::tokens::Denied;

/// What is asked, with all of its body.
pub type Asked = Request<Bytes>;
/// What is answered.
pub type Answer = Response<Pages>;

/// Answers.
pub trait Answers: fmt::Debug + Send + Sync {
    /// The answer to `asked`.
    fn answer<'a>(&'a self, asked: &'a Asked) -> BoxFuture<'a, Answer>;
}

/// Plain words, ended by a line break as Go does.
pub(super) fn text(status: StatusCode, words: &str) -> Answer {
    let mut answer = Response::new(Pages::from(format!("{words}\n")));
    *answer.status_mut() = status;
    typed(answer, "text/plain; charset=utf-8")
}

pub(super) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => typed(Response::new(Pages::from(body)), "application/json"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

pub(super) fn metrics(numbers: Pages) -> Answer {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    typed(Response::new(numbers), kind)
}

pub(super) fn typed(mut answer: Answer, kind: &'static str) -> Answer {
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

pub(super) fn denied(denied: &Denied) -> Answer {
    let mut answer = text(denied.status(), &denied.to_string());
    if denied.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        answer
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
    }
    answer
}

/// Refuses other verbs than `allowed`.
pub(super) fn only(allowed: &Method, asked: &Asked) -> Result<(), Answer> {
    // What may be read may be asked about.
    let head = allowed == Method::GET && asked.method() == Method::HEAD;
    if asked.method() == allowed || head {
        return Ok(());
    }
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
    if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    Err(answer)
}

pub(super) fn read<T: DeserializeOwned>(asked: &Asked) -> Result<T, Answer> {
    serde_json::from_slice(asked.body()).map_err(|error| {
        let words = format!("the body is not the JSON that belongs here: {error}");
        text(StatusCode::BAD_REQUEST, &words)
    })
}
