//! Preconditions of requests.

use http::{HeaderMap, HeaderName, header};

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

/// What the client says about versions that must not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfNoneMatch {
    /// Nothing.
    Absent,
    /// There must be no version.
    Any,
    /// None of these versions, without the mark of weak ones.
    NoneOf(Vec<String>),
}

impl IfNoneMatch {
    /// Whether the object in version `etag`, if there is one, may be changed. Weak versions count like strong
    /// ones, as the standard requires.
    pub fn allows(&self, etag: Option<&str>) -> bool {
        match (self, etag) {
            (Self::Absent, _) | (_, None) => true,
            (Self::Any, Some(_)) => false,
            (Self::NoneOf(versions), Some(etag)) => versions
                .iter()
                .all(|it| it != etag.trim_start_matches("W/")),
        }
    }
}

/// The `If-None-Match` header.
pub fn if_none_match(headers: &HeaderMap) -> IfNoneMatch {
    let versions = versions(headers, &header::IF_NONE_MATCH);
    if versions.contains(&"*") {
        return IfNoneMatch::Any;
    }
    if versions.is_empty() {
        return IfNoneMatch::Absent;
    }
    let strong = versions.iter().map(|it| it.trim_start_matches("W/"));
    IfNoneMatch::NoneOf(strong.map(str::to_owned).collect())
}

fn versions<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .collect()
}

/// The `If-Match` header. Weak versions never match, as the standard requires.
pub fn if_match(headers: &HeaderMap) -> IfMatch {
    let versions = versions(headers, &header::IF_MATCH);
    if versions.contains(&"*") {
        return IfMatch::Any;
    }
    if versions.is_empty() {
        return IfMatch::Absent;
    }
    let versions = versions.into_iter().filter(|it| !it.starts_with("W/"));
    IfMatch::OneOf(versions.map(str::to_owned).collect())
}
