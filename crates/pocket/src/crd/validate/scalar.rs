//! Limits on numbers and strings.

use serde_json::{Number, Value};

use super::{Findings, Place};
use crate::{schema::Limits, status::FieldErrorKind};

pub(super) fn check(limits: &Limits, value: &Value, at: &Place<'_>, findings: &mut Findings) {
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

fn range(limits: &Limits, n: f64, value: &Value, at: &Place<'_>, findings: &mut Findings) {
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
    if let Some(step) = limits.multiple_of
        && !is_multiple(n, step)
    {
        findings.in_body(at, value, format_args!("should be a multiple of {step}"));
    }
}

/// A number must fit the type its format names.
pub(super) fn check_format(format: &str, number: &Number, at: &Place<'_>, findings: &mut Findings) {
    let Some(n) = number.as_f64() else { return };
    let fits = match format {
        "int32" => n >= f64::from(i32::MIN) && n <= f64::from(i32::MAX),
        // The first number past the range is a power of two, which a float can hold exactly.
        "int64" => n >= i64::MIN as f64 && n < i64::MAX as f64 || number.is_i64(),
        _ => true,
    };
    if !fits {
        let words = format_args!("must be of type {format}: \"{number}\"");
        findings.in_body(at, &Value::Number(number.clone()), words);
    }
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

fn string(limits: &Limits, text: &str, value: &Value, at: &Place<'_>, findings: &mut Findings) {
    if let Some(most) = limits.max_length
        && text.chars().count() as u64 > most
    {
        let detail = format!("may not be more than {most} bytes");
        findings.add(FieldErrorKind::TooLong, at, None, detail);
    }
    if let Some(least) = limits.min_length
        && (text.chars().count() as u64) < least
    {
        let words = format_args!("should be at least {least} chars long");
        findings.in_body(at, value, words);
    }
    if let Some(pattern) = &limits.pattern
        && !pattern.regex.is_match(text)
    {
        let words = format_args!("should match '{}'", pattern.source);
        findings.in_body(at, value, words);
    }
}
