//! Errors for clients that expect no other form: RFC 9457.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::why::{self, Code};

/// An error, as `application/problem+json`.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The error in a few words.
    pub title: String,
    /// What happened.
    pub detail: String,
    /// The code in the error catalogue.
    pub code: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Problem {
    /// The problem `code` of the catalogue, with its particulars.
    pub fn coded(code: Code, detail: impl Into<String>) -> Self {
        let entry = why::find(code.0);
        Self {
            status: entry.map_or(500, |entry| entry.http),
            title: entry.map_or_else(String::new, |entry| entry.title.to_owned()),
            detail: detail.into(),
            code: code.to_string(),
            remedy: entry.map_or_else(String::new, |entry| entry.remedy.to_owned()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec_pretty(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
