//! Preconditions of requests.

use http::{HeaderMap, header};

/// What the client says about the version that it wants to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Nothing.
    Absent,
    /// Any version, but there must be one.
    Any,
    /// One of these versions, as they were given out.
    OneOf(Vec<String>),
}

impl IfMatch {
    /// Whether the object in version `etag`, if there is one, may be changed.
    pub fn allows(&self, etag: Option<&str>) -> bool {
        match (self, etag) {
            (Self::Absent, _) | (Self::Any, Some(_)) => true,
            (Self::OneOf(versions), Some(etag)) => versions.iter().any(|it| it == etag),
            (_, None) => false,
        }
    }
}

/// The `If-Match` header. Weak versions never match, as the standard requires.
pub fn if_match(headers: &HeaderMap) -> IfMatch {
    let values = headers.get_all(header::IF_MATCH).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let versions: Vec<_> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .collect();
    if versions.contains(&"*") {
        return IfMatch::Any;
    }
    if versions.is_empty() {
        return IfMatch::Absent;
    }
    let versions = versions.into_iter().filter(|it| !it.starts_with("W/"));
    IfMatch::OneOf(versions.map(str::to_owned).collect())
}
