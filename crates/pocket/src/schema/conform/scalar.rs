//! Scalars: types, ranges and canonical forms.

use std::sync::LazyLock;

use base64::{
    DecodeError, Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use jiff::Timestamp;
use serde_json::{Number, Value};

use super::{Node, Schema, Type, builtin};
use crate::quantity::Quantity;

/// What is wrong with a scalar.
pub(super) enum Problem {
    /// Another JSON type, or a number that does not fit.
    Mismatch,
    /// The right type with a content that cannot be read.
    Content(String),
}

/// Checks a scalar and brings it into its canonical form.
pub(super) fn check(schema: Schema<'_>, value: &mut Value) -> Result<(), Problem> {
    let node = schema.node();
    match (node.ty, &mut *value) {
        (Type::String, Value::String(text)) => string(schema, text),
        (Type::Integer, Value::Number(number)) => integer(node, number),
        (Type::IntOrString, Value::Number(number)) => int32(number),
        (Type::Quantity, Value::Number(number)) => {
            *value = Value::from(quantity(&number.to_string())?);
            Ok(())
        }
        (Type::Quantity, Value::String(text)) => {
            let canonical = quantity(text.trim())?;
            if *text != canonical {
                *text = canonical;
            }
            Ok(())
        }
        (Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::IntOrString, Value::String(_)) => Ok(()),
        _ => Err(Problem::Mismatch),
    }
}

fn string(schema: Schema<'_>, text: &mut String) -> Result<(), Problem> {
    match schema.node().format.as_deref() {
        Some("date-time") => time(schema, text),
        Some("byte") => bytes(text),
        _ => Ok(()),
    }
}

/// Only numbers written as integers are integers: `1.0` is refused as `1.5` is.
fn integer(node: &Node, number: &Number) -> Result<(), Problem> {
    match node.format.as_deref() {
        Some("int32") => int32(number),
        _ if number.as_i64().is_some() => Ok(()),
        _ => Err(Problem::Mismatch),
    }
}

fn int32(number: &Number) -> Result<(), Problem> {
    let small = number.as_i64().and_then(|n| i32::try_from(n).ok());
    small.map(|_| ()).ok_or(Problem::Mismatch)
}

fn quantity(text: &str) -> Result<String, Problem> {
    match text.parse::<Quantity>() {
        Ok(quantity) => Ok(quantity.to_string()),
        Err(why) => Err(Problem::Content(why.to_string())),
    }
}

/// Times are kept in UTC, in whole seconds or, for the one type that has them, in microseconds.
fn time(schema: Schema<'_>, text: &mut String) -> Result<(), Problem> {
    let read = Some(&*text).filter(|text| is_rfc3339(text));
    let Some(time) = read.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return Err(Problem::Content(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse it as an RFC 3339 time"
        )));
    };
    let canonical = if is_micro_time(schema) {
        format!("{time:.6}")
    } else {
        format!("{time:.0}")
    };
    if *text != canonical {
        *text = canonical;
    }
    Ok(())
}

/// The two time types differ in nothing but their name.
fn is_micro_time(schema: Schema<'_>) -> bool {
    const NAME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
    static MICRO: LazyLock<Option<super::super::NodeId>> =
        LazyLock::new(|| builtin().named(NAME).map(Schema::id));
    std::ptr::eq(schema.set, builtin()) && *MICRO == Some(schema.id())
}

/// `2006-01-02T15:04:05[.999](Z|+07:00)`: the general parser takes more than that.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((head, tail)) = bytes.split_at_checked(19) else {
        return false;
    };
    let shaped = head.iter().zip(b"0000-00-00T00:00:00").all(like);
    let seconds_in_range = &head[17..] < b"60".as_slice();
    let fraction = match tail.strip_prefix(b".") {
        None => 0,
        Some(after) => match after.iter().take_while(|b| b.is_ascii_digit()).count() {
            0 => return false,
            digits => digits + 1,
        },
    };
    let zone = &tail[fraction..];
    let zoned = zone == b"Z"
        || (zone.len() == 6
            && matches!(zone[0], b'+' | b'-')
            && zone[1..].iter().zip(b"00:00").all(like));
    shaped && seconds_in_range && zoned
}

fn like((byte, pattern): (&u8, &u8)) -> bool {
    match pattern {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    }
}

/// Line breaks inside are skipped and the last bits may be anything, as the reference has it.
fn bytes(text: &mut String) -> Result<(), Problem> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if text.contains(['\r', '\n']) {
        text.retain(|c| c != '\r' && c != '\n');
    }
    match LENIENT.decode(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(why) => {
            let at = match why {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
            };
            let text = format!("illegal base64 data at input byte {at}");
            Err(Problem::Content(text))
        }
    }
}
