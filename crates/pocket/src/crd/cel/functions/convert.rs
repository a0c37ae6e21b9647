//! Conversions from one type to another.

use jiff::Timestamp;

use super::{super::value::Text, CallResult, Evaluator, Fault, Val};
use crate::{crd::validate, environment::rfc3339};

pub(super) fn global<'a>(machine: &Evaluator<'_>, name: &str, args: &[Val<'a>]) -> CallResult<'a> {
    let [value] = args else { return None };
    Some(match name {
        "dyn" => Ok(value.clone()),
        "type" => Ok(Val::Type(value.type_name())),
        "int" => int(value)?,
        "uint" => uint(value)?,
        "double" => double(value)?,
        "bool" => boolean(value)?,
        "string" => string(machine, value)?,
        "bytes" => match value {
            Val::Text(text) => {
                let paid = machine.meter.spend_text(text.len());
                paid.map(|()| Val::Bytes(text.as_bytes().into()))
            }
            Val::Bytes(_) => Ok(value.clone()),
            _ => return None,
        },
        "timestamp" => timestamp(value)?,
        "duration" => match value {
            Val::Text(text) => validate::go_duration(text)
                .map(Val::Span)
                .ok_or_else(|| unreadable("duration", text)),
            Val::Span(_) => Ok(value.clone()),
            _ => return None,
        },
        _ => return None,
    })
}

fn unreadable(what: &str, text: &str) -> Fault {
    let shown: String = text.chars().take(80).collect();
    Fault::Error(format!("{what} conversion error: \"{shown}\""))
}

fn range() -> Fault {
    Fault::Error("integer overflow".into())
}

fn int<'a>(value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Int(_) => Ok(value.clone()),
        Val::Uint(n) => i64::try_from(*n).map(Val::Int).map_err(|_| range()),
        Val::Double(n) if n.abs() < i64::MAX as f64 => Ok(Val::Int(*n as i64)),
        Val::Double(_) => Err(range()),
        Val::Text(text) => text
            .parse()
            .map(Val::Int)
            .map_err(|_| unreadable("int", text)),
        Val::Time(time) => Ok(Val::Int(time.as_second())),
        Val::Span(span) => Ok(Val::Int(span.as_secs())),
        _ => return None,
    })
}

fn uint<'a>(value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Uint(_) => Ok(value.clone()),
        Val::Int(n) => u64::try_from(*n).map(Val::Uint).map_err(|_| range()),
        Val::Double(n) if *n >= 0.0 && *n < u64::MAX as f64 => Ok(Val::Uint(*n as u64)),
        Val::Double(_) => Err(range()),
        Val::Text(text) => text
            .parse()
            .map(Val::Uint)
            .map_err(|_| unreadable("uint", text)),
        _ => return None,
    })
}

fn double<'a>(value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Double(_) => Ok(value.clone()),
        Val::Int(n) => Ok(Val::Double(*n as f64)),
        Val::Uint(n) => Ok(Val::Double(*n as f64)),
        Val::Text(text) => text
            .parse()
            .map(Val::Double)
            .map_err(|_| unreadable("double", text)),
        _ => return None,
    })
}

fn boolean<'a>(value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Bool(_) => Ok(value.clone()),
        Val::Text(text) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            other => Err(unreadable("bool", other)),
        },
        _ => return None,
    })
}

fn string<'a>(machine: &Evaluator<'_>, value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Text(_) => Ok(value.clone()),
        Val::Bytes(bytes) => machine.meter.spend_text(bytes.len()).and_then(|()| {
            std::str::from_utf8(bytes)
                .map(Val::text)
                .map_err(|_| Fault::Error("invalid UTF-8 in bytes".into()))
        }),
        other => Ok(Val::text(plain(other)?)),
    })
}

/// The text of a value with exactly one plain representation.
pub(super) fn plain(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(value) => value.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(n) => n.to_string(),
        Val::Text(Text::Of(text)) => (*text).to_owned(),
        Val::Text(Text::Made(text)) => text.to_string(),
        Val::Time(time) if time.subsec_nanosecond() == 0 => rfc3339(*time),
        Val::Time(time) => time.to_string(),
        Val::Span(span) => format!("{}s", span.as_secs_f64()),
        Val::Quantity(quantity) => quantity.to_string(),
        Val::Ip(address) => address.to_string(),
        Val::Net(net) => net.to_string(),
        Val::Type(name) => (*name).to_owned(),
        Val::Null => "null".into(),
        _ => return None,
    })
}

fn timestamp<'a>(value: &Val<'a>) -> CallResult<'a> {
    Some(match value {
        Val::Time(_) => Ok(value.clone()),
        Val::Int(seconds) => Timestamp::from_second(*seconds)
            .map(Val::Time)
            .map_err(|_| range()),
        Val::Text(text) => validate::date_time(text)
            .map(Val::Time)
            .ok_or_else(|| unreadable("timestamp", text)),
        _ => return None,
    })
}
