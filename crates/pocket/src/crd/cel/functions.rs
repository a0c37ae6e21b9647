//! The functions rules may call: CEL's own, and those Kubernetes adds.
//!
//! The overload follows from the type of the target. [`signatures`] lists every function with its
//! types; a call that is in the table and not implemented here is a defect.

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
    eval::{Evaluation, Evaluator},
    lookup::is_zero,
    meter::Fault,
    value::Val,
};

/// `None` if the function is not in the family asked.
type CallResult<'a> = Option<Evaluation<'a>>;

pub(super) fn call<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Evaluation<'a> {
    for arg in args {
        machine.meter.spend_value(arg)?;
    }
    let answer = match target {
        None => global(machine, name, args),
        Some(target) => method(machine, name, target, args),
    };
    answer.unwrap_or_else(|| {
        let types: Vec<&str> = target.into_iter().chain(args).map(Val::type_name).collect();
        Fault::error(format!("no such overload: {name}({})", types.join(", ")))
    })
}

fn global<'a>(machine: &Evaluator<'_>, name: &str, args: &[Val<'a>]) -> CallResult<'a> {
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

fn method<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    target: &Val<'a>,
    args: &[Val<'a>],
) -> CallResult<'a> {
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

/// `or` and `orValue` get here only when the optional is empty.
fn optional<'a>(name: &str, inner: Option<&Val<'a>>, args: &[Val<'a>]) -> CallResult<'a> {
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

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Arc};

    use super::{
        super::{
            meter::Meter, net::Net, parse::parse, quantity::CelQuantity, semver::Semver, url::Url,
        },
        signatures::{SIGNATURES, Takes},
        *,
    };

    fn sample(takes: Takes) -> Val<'static> {
        match takes {
            Takes::Any | Takes::Int => Val::Int(1),
            Takes::Bool => Val::Bool(true),
            Takes::Uint => Val::Uint(1),
            Takes::Double => Val::Double(1.0),
            Takes::Text => Val::text("1"),
            Takes::Bytes => Val::Bytes(Arc::from(*b"1")),
            Takes::Time => Val::Time(jiff::Timestamp::UNIX_EPOCH),
            Takes::Span => Val::Span(jiff::SignedDuration::ZERO),
            Takes::List => Val::list(vec![Val::Int(1)]),
            Takes::Texts => Val::list(vec![Val::text("a")]),
            Takes::Map => Val::Map(super::super::value::MapValue::Made(Arc::default())),
            Takes::Optional => Val::Optional(None),
            Takes::Quantity => Val::Quantity(CelQuantity::from_int(1)),
            Takes::Url => Val::Url(Url::parse("http://a/").unwrap().into()),
            Takes::Ip => Val::Ip(Ipv4Addr::LOCALHOST.into()),
            Takes::Net => Val::Net(Net::parse("10.0.0.0/8").unwrap()),
            Takes::Semver => Val::Semver(Semver::parse("1.0.0").unwrap().into()),
            Takes::Format => Val::Format("uuid"),
        }
    }

    #[test]
    fn every_function_of_the_table_is_answered() {
        let program = parse("true").unwrap();
        let meter = Meter::new(1_000_000);
        let machine = Evaluator {
            program: &program,
            meter: &meter,
        };
        for (name, target, args, _) in SIGNATURES {
            let target = target.map(sample);
            let args: Vec<_> = args.iter().copied().map(sample).collect();
            if let Err(Fault::Error(error)) = call(&machine, name, target.as_ref(), &args) {
                assert!(!error.contains("no such overload"), "{error}");
            }
        }
    }
}
