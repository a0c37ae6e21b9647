//! Errors as the specification shows them.

use std::fmt;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use neap_kit::client::Body;
use serde_json::{Value, json};

/// The code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestTooLarge,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    PaginationNumberInvalid,
    RangeInvalid,
    SizeInvalid,
    TagInvalid,
    Unauthorized,
    Denied,
    Unsupported,
    /// There is no room for more content.
    Full,
    /// The storage failed.
    Unknown,
}

impl ErrorCode {
    /// Its name in error bodies.
    pub fn name(self) -> &'static str {
        match self {
            Self::BlobUnknown => "BLOB_UNKNOWN",
            Self::BlobUploadInvalid | Self::RangeInvalid => "BLOB_UPLOAD_INVALID",
            Self::BlobUploadUnknown => "BLOB_UPLOAD_UNKNOWN",
            Self::DigestInvalid => "DIGEST_INVALID",
            Self::ManifestBlobUnknown => "MANIFEST_BLOB_UNKNOWN",
            Self::ManifestInvalid | Self::ManifestTooLarge => "MANIFEST_INVALID",
            Self::ManifestUnknown => "MANIFEST_UNKNOWN",
            Self::NameInvalid => "NAME_INVALID",
            Self::NameUnknown => "NAME_UNKNOWN",
            Self::PaginationNumberInvalid => "PAGINATION_NUMBER_INVALID",
            Self::SizeInvalid => "SIZE_INVALID",
            Self::TagInvalid => "TAG_INVALID",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Denied | Self::Full => "DENIED",
            Self::Unsupported => "UNSUPPORTED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The status of an answer with it.
    pub fn status(self) -> StatusCode {
        match self {
            Self::BlobUnknown
            | Self::BlobUploadUnknown
            | Self::ManifestBlobUnknown
            | Self::ManifestUnknown
            | Self::NameUnknown => StatusCode::NOT_FOUND,
            Self::BlobUploadInvalid
            | Self::DigestInvalid
            | Self::ManifestInvalid
            | Self::NameInvalid
            | Self::PaginationNumberInvalid
            | Self::SizeInvalid
            | Self::TagInvalid => StatusCode::BAD_REQUEST,
            Self::ManifestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RangeInvalid => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Denied => StatusCode::FORBIDDEN,
            Self::Unsupported => StatusCode::METHOD_NOT_ALLOWED,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
            Self::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A request that was not carried out.
#[derive(Debug)]
pub struct RegistryError {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, for people.
    pub message: String,
    /// What it is about.
    pub detail: Value,
    headers: Vec<(HeaderName, String)>,
}

impl RegistryError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: Value::Null,
            headers: Vec::new(),
        }
    }

    /// The same error with what it is about.
    pub(super) fn about(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.detail = json!({ name: value.to_string() });
        self
    }

    /// The same error with a header.
    pub(super) fn with_header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn response(&self) -> Response<Body> {
        let mut error = json!({"code": self.code.name(), "message": self.message});
        if !self.detail.is_null() {
            error["detail"] = self.detail.clone();
        }
        let body = json!({"errors": [error]}).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.code.status();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name.clone(), value);
            }
        }
        response
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for RegistryError {}

/// The storage failed.
impl From<std::io::Error> for RegistryError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Self::new(ErrorCode::Full, "there is no room for more content");
        }
        Self::new(ErrorCode::Unknown, format!("the storage failed: {error}"))
    }
}
