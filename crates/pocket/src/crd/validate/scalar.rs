//! Limits on numbers and strings.

use serde_json::{Number, Value};

use super::{FieldPath, Findings};
use crate::{
    schema::{Limits, Type},
    status::{FieldError, FieldErrorKind},
};

pub(super) fn check(limits: &Limits, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    match value {
        Value::Number(number) => {
            if let Some(n) = number.as_f64() {
                range(limits, n, value, at, findings);
            }
        }
        Value::String(text) => string(limits, text, value, at, findings),
        _ => {}
    }
}

fn range(limits: &Limits, n: f64, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    if let Some(of) = limits.multiple_of {
        step(of, n, value, at, findings);
    }
    if let Some(least) = limits.minimum {
        if limits.exclusive_minimum && n <= least {
            findings.in_body(at, value, format_args!("should be greater than {least}"));
        } else if n < least {
            let words = format_args!("should be greater than or equal to {least}");
            findings.in_body(at, value, words);
        }
    }
    if let Some(most) = limits.maximum {
        if limits.exclusive_maximum && n >= most {
            findings.in_body(at, value, format_args!("should be less than {most}"));
        } else if n > most {
            let words = format_args!("should be less than or equal to {most}");
            findings.in_body(at, value, words);
        }
    }
}

/// Checks `multipleOf`. An integer is measured with the integer part of the step, which must be
/// positive.
fn step(step: f64, n: f64, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    let whole = value.is_i64();
    let measure = if whole { step.trunc() } else { step };
    if whole && measure <= 0.0 {
        let detail = format!("factor MultipleOf declared for {at} must be positive: {measure}");
        findings.add(FieldErrorKind::Invalid, at, Some(0.into()), detail);
    } else if !is_multiple(n, measure) {
        findings.in_body(at, value, format_args!("should be a multiple of {step}"));
    }
}

/// Checks that a number fits the type its format names. The API server reports this for the whole
/// object, and names the field only in the message.
pub(super) fn check_format(
    ty: Type,
    format: Option<&str>,
    number: &Number,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let Some(n) = number.as_f64() else { return };
    let named = match (ty, format) {
        (Type::Integer, Some("int32")) if !is_within(n, i32::MIN.into(), i32::MAX.into()) => {
            "integer with format int32"
        }
        (Type::Integer, Some("int64")) if !is_long(number, n) => "integer with format int64",
        (Type::Integer, None) if !is_long(number, n) => "integer (default format)",
        (Type::Number, Some("float")) if n.abs() > f32::MAX.into() => "number with format float",
        _ => return,
    };
    findings.0.push(FieldError {
        kind: FieldErrorKind::Invalid,
        path: "<nil>".into(),
        value: Some("".into()),
        detail: format!("Checked value must be of type {named} in {at}"),
    });
}

fn is_within(n: f64, least: f64, most: f64) -> bool {
    n.fract() == 0.0 && n >= least && n <= most
}

/// The first number past the range is a power of two, which a float can hold exactly.
fn is_long(number: &Number, n: f64) -> bool {
    number.is_i64() || n < i64::MAX as f64 && is_within(n, i64::MIN as f64, i64::MAX as f64)
}

/// Decimal steps such as 0.01 have no exact binary form, so the quotient is compared with a
/// tolerance of its own size.
fn is_multiple(n: f64, step: f64) -> bool {
    if step <= 0.0 {
        return true;
    }
    let quotient = n / step;
    (quotient - quotient.round()).abs() <= f64::EPSILON * quotient.abs().max(1.0)
}

/// Reports the first limit that a text breaks.
fn string(limits: &Limits, text: &str, value: &Value, at: &FieldPath<'_>, findings: &mut Findings) {
    if let Some(most) = limits.max_length
        && text.chars().count() as u64 > most
    {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {bytes}");
        findings.add(FieldErrorKind::TooLong, at, None, detail);
        return;
    }
    if let Some(least) = limits.min_length
        && (text.chars().count() as u64) < least
    {
        let words = format_args!("should be at least {least} chars long");
        findings.in_body(at, value, words);
        return;
    }
    if let Some(pattern) = &limits.pattern
        && !pattern.regex.is_match(text)
    {
        let words = format_args!("should match '{}'", pattern.source);
        findings.in_body(at, value, words);
    }
}
