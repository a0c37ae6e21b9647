//! Values of scalar types, as the JSON of protocol buffers writes them.

use base64::{Engine, prelude::*};
use serde_json::Value;

/// What a valid value of a scalar type is; none if `value` is one.
pub(super) fn fault(kind: &str, value: &Value) -> Option<&'static str> {
    let (valid, wants) = match kind {
        "string" => (value.is_string(), "a string"),
        "bool" => (value.is_boolean(), "true or false"),
        "bytes" => (is_base64(value), "bytes in base64"),
        "double" | "float" => (is_double(value), "a number"),
        "int32" | "sint32" | "sfixed32" => (
            whole(value).is_some_and(|it| i32::try_from(it).is_ok()),
            "a whole number of 32 bits",
        ),
        "uint32" | "fixed32" => (
            whole(value).is_some_and(|it| u32::try_from(it).is_ok()),
            "a whole number from 0 to 4294967295",
        ),
        "uint64" | "fixed64" => (
            whole(value).is_some_and(|it| u64::try_from(it).is_ok()),
            "a whole number from 0 on",
        ),
        _ => (
            whole(value).is_some_and(|it| i64::try_from(it).is_ok()),
            "a whole number",
        ),
    };
    (!valid).then_some(wants)
}

/// A whole number, as a number or as a string. `3.0` and `"3"` are whole.
fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => {
            let exact = number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from));
            exact.or_else(|| number.as_f64().and_then(whole_double))
        }
        Value::String(text) => {
            let exact = text.parse().ok();
            exact.or_else(|| text.parse().ok().and_then(whole_double))
        }
        _ => None,
    }
}

fn whole_double(number: f64) -> Option<i128> {
    let whole = number.fract() == 0.0 && number.abs() < 1e30;
    whole.then_some(number as i128)
}

fn is_double(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => {
            matches!(&**text, "NaN" | "Infinity" | "-Infinity") || text.parse::<f64>().is_ok()
        }
        _ => false,
    }
}

fn is_base64(value: &Value) -> bool {
    let text = value.as_str();
    text.is_some_and(|text| {
        BASE64_STANDARD.decode(text).is_ok()
            || BASE64_STANDARD_NO_PAD.decode(text).is_ok()
            || BASE64_URL_SAFE.decode(text).is_ok()
            || BASE64_URL_SAFE_NO_PAD.decode(text).is_ok()
    })
}

/// The number of nanoseconds of a duration such as `300s` or `1.5s`.
pub fn duration(text: &str) -> Option<i128> {
    let number = text.strip_suffix('s')?;
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    if number.ends_with('.') {
        return None;
    }
    let seconds: i128 = whole.parse().ok()?;
    let nanoseconds: i128 = format!("{fraction:0<9}").parse().ok()?;
    let total = seconds * 1_000_000_000 + nanoseconds;
    let limit = 315_576_000_000_i128 * 1_000_000_000;
    (total <= limit).then_some(if negative { -total } else { total })
}

/// Whether a value of a well-known type is valid, or else what it has to be; none if the type is another.
pub(super) fn check_well_known(message: &str, value: &Value) -> Option<Result<(), &'static str>> {
    let (valid, wants) = match message {
        "google.protobuf.Duration" => (
            value.as_str().is_some_and(|it| duration(it).is_some()),
            "a number of seconds such as \"300s\"",
        ),
        "google.protobuf.Timestamp" => (
            value
                .as_str()
                .is_some_and(|it| it.parse::<jiff::Timestamp>().is_ok()),
            "a time such as \"2026-01-31T00:00:00Z\"",
        ),
        "google.protobuf.Struct" => (value.is_object(), "an object"),
        "google.protobuf.Value" => (true, "any value"),
        "google.protobuf.ListValue" => (value.is_array(), "a list"),
        "google.protobuf.Empty" => (
            value.as_object().is_some_and(serde_json::Map::is_empty),
            "an empty object: {}",
        ),
        "google.protobuf.UInt32Value" => (fault("uint32", value).is_none(), "a whole number"),
        "google.protobuf.UInt64Value" => (fault("uint64", value).is_none(), "a whole number"),
        "google.protobuf.Any" => (value.is_object(), "an object with \"@type\""),
        _ => return None,
    };
    Some(if valid { Ok(()) } else { Err(wants) })
}
