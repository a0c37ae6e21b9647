//! What the headers of a request ask for.

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
    /// What the headers ask for, if anything.
    pub(in crate::wire) fn read(headers: &HeaderMap) -> Result<Option<Self>> {
        let is_asked = |name: &HeaderName| name.as_str().starts_with("impersonate-");
        if !headers.keys().any(is_asked) {
            return Ok(None);
        }
        let all = |name: &str| -> Vec<String> {
            let values = headers.get_all(name).into_iter();
            values
                .filter_map(|value| Some(value.to_str().ok()?.to_owned()))
                .collect()
        };
        let first = |name| all(name).into_iter().next().unwrap_or_default();
        let wanted = User {
            name: first("impersonate-user"),
            uid: first("impersonate-uid"),
            groups: all("impersonate-group"),
            extra: extras(headers, &all),
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

fn extras(
    headers: &HeaderMap,
    all: &impl Fn(&str) -> Vec<String>,
) -> BTreeMap<String, Vec<String>> {
    let names = headers.keys().map(HeaderName::as_str);
    let named = names.filter_map(|name| {
        let key = percent_decode_str(name.strip_prefix(EXTRA)?);
        Some((key.decode_utf8_lossy().into_owned(), all(name)))
    });
    named.collect()
}

/// 400 for details of a user whom nobody named. Others show what was asked for in their own terms.
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
