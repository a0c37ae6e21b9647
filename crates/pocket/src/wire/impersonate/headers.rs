//! The impersonation headers of a request.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use super::Impersonation;
use crate::{
    rest::User,
    status::{ApiError, Result},
};

const EXTRA: &str = "impersonate-extra-";

impl Impersonation {
    /// Parses the headers; `None` if there are none.
    pub(in crate::wire) fn read(headers: &HeaderMap) -> Result<Option<Self>> {
        let is_asked = |name: &HeaderName| name.as_str().starts_with("impersonate-");
        if !headers.keys().any(is_asked) {
            return Ok(None);
        }
        let first = |name| all(headers, name).map(|all| all.into_iter().next().unwrap_or_default());
        let wanted = User {
            name: first("impersonate-user")?,
            uid: first("impersonate-uid")?,
            groups: all(headers, "impersonate-group")?,
            extra: extras(headers)?,
        };
        if wanted == User::default() {
            return Ok(None);
        }
        if wanted.name.is_empty() {
            return Err(nameless(&wanted));
        }
        Ok(Some(Self { wanted }))
    }
}

/// The values of a header. One that is not text is refused: ignoring it would run the request with
/// the caller's own rights.
fn all(headers: &HeaderMap, name: &str) -> Result<Vec<String>> {
    let values = headers.get_all(name).into_iter();
    values
        .map(|value| match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(ApiError::bad_request(format!(
                "the value of header {name} is not valid UTF-8"
            ))),
        })
        .collect()
}

fn extras(headers: &HeaderMap) -> Result<BTreeMap<String, Vec<String>>> {
    let names = headers.keys().map(HeaderName::as_str);
    let named = names.filter_map(|name| Some((name, name.strip_prefix(EXTRA)?)));
    named
        .map(|(name, key)| {
            let key = percent_decode_str(key).decode_utf8_lossy();
            Ok((key.into_owned(), all(headers, name)?))
        })
        .collect()
}

/// 400 for attributes without a user name. kube-apiserver shows the request in Go syntax.
fn nameless(wanted: &User) -> ApiError {
    let quoted = |words: &[String]| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("[]string{{{}}}", words.join(", "))
    };
    let groups = match wanted.groups.as_slice() {
        [] => "[]string(nil)".into(),
        groups => quoted(groups),
    };
    let extra: Vec<String> = wanted
        .extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", quoted(values)))
        .collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".into(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}} without impersonating a user name",
        wanted.uid
    ))
}
