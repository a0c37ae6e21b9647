//! Scalars: types, ranges and canonical forms.

use std::sync::LazyLock;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use serde_json::{Number, Value};

use super::{Node, Schema, Type, builtin};
use crate::quantity::Quantity;

/// The message for a malformed quantity.
pub(super) const NOT_A_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

pub(super) enum ScalarProblem {
    /// Another JSON type, or a number that does not fit.
    Mismatch,
    /// The right type with invalid content.
    Content(String),
}

/// Checks a scalar and brings it into its canonical form.
pub(super) fn check(schema: Schema<'_>, value: &mut Value) -> Result<(), ScalarProblem> {
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
        _ => Err(ScalarProblem::Mismatch),
    }
}

fn string(schema: Schema<'_>, text: &mut String) -> Result<(), ScalarProblem> {
    match schema.node().format.as_deref() {
        Some("date-time") => time(schema, text),
        Some("byte") => bytes(text),
        _ => Ok(()),
    }
}

/// Only numbers written as integers are integers: `1.0` is refused as `1.5` is.
fn integer(node: &Node, number: &Number) -> Result<(), ScalarProblem> {
    match node.format.as_deref() {
        Some("int32") => int32(number),
        _ if number.as_i64().is_some() => Ok(()),
        _ => Err(ScalarProblem::Mismatch),
    }
}

fn int32(number: &Number) -> Result<(), ScalarProblem> {
    let small = number.as_i64().and_then(|n| i32::try_from(n).ok());
    small.map(|_| ()).ok_or(ScalarProblem::Mismatch)
}

/// A merged number where an integer belongs: one that is too large loses its upper bits, and only
/// one with a fraction is refused.
pub(super) fn converted(node: &Node, number: &Number) -> Option<Value> {
    let whole = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole,
        (None, Some(float)) if float.fract() == 0.0 => reach(float),
        _ => return None,
    };
    Some(match node.format.as_deref() {
        // kube-apiserver truncates it, too.
        Some("int32") => Value::from(whole as i32),
        _ => Value::from(whole),
    })
}

/// A number beyond all integers becomes the least of them.
fn reach(float: f64) -> i64 {
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    if (-EDGE..EDGE).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

fn quantity(text: &str) -> Result<String, ScalarProblem> {
    match text.parse::<Quantity>() {
        Ok(quantity) => Ok(quantity.to_string()),
        Err(why) => Err(ScalarProblem::Content(why.to_string())),
    }
}

/// Resource amounts are rounded up to thousandths.
pub(super) fn round_up(value: &mut Value) {
    // Only the smallest suffixes can be below a thousandth.
    if let Value::String(text) = value
        && (text.ends_with(['n', 'u']) || text.contains("e-"))
        && let Ok(quantity) = text.parse::<Quantity>()
    {
        *text = quantity.in_thousandths().to_string();
    }
}

/// Normalizes a time to UTC, in whole seconds or, for the one type that has them, in microseconds.
fn time(schema: Schema<'_>, text: &mut String) -> Result<(), ScalarProblem> {
    let micros = is_micro_time(schema);
    let time = super::time::parse(text, micros).map_err(ScalarProblem::Content)?;
    let canonical = if micros {
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

/// Normalizes base64. Line breaks are skipped and the last bits may be anything, as in
/// kube-apiserver; the stored text has neither.
fn bytes(text: &mut String) -> Result<(), ScalarProblem> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if text.contains(['\r', '\n']) {
        text.retain(|c| c != '\r' && c != '\n');
    }
    let Ok(decoded) = LENIENT.decode(text.as_bytes()) else {
        let at = illegal_at(text.as_bytes());
        let text = format!("illegal base64 data at input byte {at}");
        return Err(ScalarProblem::Content(text));
    };
    // Only the last group can have several encodings.
    if text.ends_with('=') {
        text.clear();
        LENIENT.encode_string(&decoded, text);
    }
    Ok(())
}

/// Bytes that were sent as numbers, in their stored form.
pub(super) fn encoded(numbers: &[Value]) -> String {
    let byte = |number: &Value| number.as_u64().and_then(|n| u8::try_from(n).ok());
    let bytes: Vec<u8> = numbers.iter().map(|n| byte(n).unwrap_or(0)).collect();
    BASE64_STANDARD.encode(bytes)
}

/// The position where kube-apiserver's decoder stops: the first byte that is invalid there, or the
/// start of an incomplete last group.
fn illegal_at(text: &[u8]) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = text.iter().take_while(|byte| is_digit(byte)).count();
    match (digits % 4, &text[digits..]) {
        (begun, []) => digits - begun,
        (2, [b'=']) => text.len(),
        (2, [b'=', b'=', ..]) => digits + 2,
        (3, [b'=', ..]) => digits + 1,
        _ => digits,
    }
}
