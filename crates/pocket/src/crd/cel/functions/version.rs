//! Functions on semantic versions.

use super::{super::semver::Semver, CallResult, Fault, Val};

pub(super) fn global<'a>(name: &str, args: &[Val<'a>]) -> CallResult<'a> {
    let (text, loosely) = match args {
        [Val::Text(text)] => (text, false),
        [Val::Text(text), Val::Bool(loosely)] => (text, *loosely),
        _ => return None,
    };
    let read = || {
        if loosely {
            Semver::parse_loosely(text)
        } else {
            Semver::parse(text)
        }
    };
    match name {
        "isSemver" => Some(Ok(Val::Bool(read().is_some()))),
        "semver" => Some(match read() {
            Some(version) => Ok(Val::Semver(version.into())),
            None => Fault::error("semver parse error during conversion from string"),
        }),
        _ => None,
    }
}

pub(super) fn method<'a>(name: &str, version: &Semver, args: &[Val<'a>]) -> CallResult<'a> {
    let value = match (name, args) {
        ("major", []) => Val::Int(version.major),
        ("minor", []) => Val::Int(version.minor),
        ("patch", []) => Val::Int(version.patch),
        ("isLessThan", [Val::Semver(other)]) => Val::Bool(version < &**other),
        ("isGreaterThan", [Val::Semver(other)]) => Val::Bool(version > &**other),
        ("compareTo", [Val::Semver(other)]) => Val::Int(version.cmp(other) as i64),
        _ => return None,
    };
    Some(Ok(value))
}
