//! The functions rules may call: the language's own, and those Kubernetes adds to it.
//!
//! Which function is meant follows from the type of the target. What exists, with which types, is
//! the table in [`signatures`]; a call that is in the table and not answered here is a defect.

mod convert;
mod format;
mod formats;
mod list;
mod network;
pub(super) mod signatures;
mod text;
mod time;
mod version;

use super::{
    eval::{Machine, Outcome},
    lookup::is_zero,
    meter::Fault,
    value::Val,
};

/// A function that is not known to the family asked gives `None`.
type Answer<'a> = Option<Outcome<'a>>;

pub(super) fn call<'a>(
    machine: &Machine<'_>,
    name: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Outcome<'a> {
    let answer = match target {
        None => global(machine, name, args),
        Some(target) => method(machine, name, target, args),
    };
    answer.unwrap_or_else(|| {
        let types: Vec<&str> = target.into_iter().chain(args).map(Val::type_name).collect();
        Fault::error(format!("no such overload: {name}({})", types.join(", ")))
    })
}

fn global<'a>(machine: &Machine<'_>, name: &str, args: &[Val<'a>]) -> Answer<'a> {
    match (name, args) {
        // `size(x)` and `matches(x, y)` are also written as methods.
        ("size" | "matches", [target, rest @ ..]) => method(machine, name, target, rest),
        ("optional.none", []) => Some(Ok(Val::Optional(None))),
        ("optional.of", [value]) => Some(Ok(value.clone().some())),
        ("optional.ofNonZeroValue", [value]) => Some(Ok(if is_zero(value) {
            Val::Optional(None)
        } else {
            value.clone().some()
        })),
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [a, b]) => {
            list::sets(machine, name, a, b)
        }
        ("strings.quote", [Val::Text(text)]) => Some(Ok(Val::text(format!("{:?}", &**text)))),
        _ => formats::global(name, args)
            .or_else(|| network::global(name, args))
            .or_else(|| version::global(name, args))
            .or_else(|| convert::global(machine, name, args)),
    }
}

fn method<'a>(machine: &Machine<'_>, name: &str, target: &Val<'a>, args: &[Val<'a>]) -> Answer<'a> {
    match target {
        Val::Text(text) => text::method(machine, name, text, args),
        Val::List(list) => list::method(machine, name, list, args),
        Val::Map(fields) if name == "size" => Some(Ok(Val::Int(fields.len() as i64))),
        Val::Bytes(bytes) if name == "size" => Some(Ok(Val::Int(bytes.len() as i64))),
        Val::Time(time) => time::of_time(name, *time, args),
        Val::Span(span) => time::of_span(name, *span),
        Val::Semver(semver) => version::method(name, semver, args),
        Val::Format(format) => formats::validate(machine, name, format, args),
        Val::Optional(inner) => optional(name, inner.as_deref(), args),
        _ => network::method(name, target, args),
    }
}

/// `or` and `orValue` come here only when there is nothing inside.
fn optional<'a>(name: &str, inner: Option<&Val<'a>>, args: &[Val<'a>]) -> Answer<'a> {
    match (name, args) {
        ("hasValue", []) => Some(Ok(Val::Bool(inner.is_some()))),
        ("value", []) => Some(match inner {
            Some(value) => Ok(value.clone()),
            None => Fault::error("optional.none() dereference"),
        }),
        ("or" | "orValue", [other]) => Some(Ok(other.clone())),
        _ => None,
    }
}
