//! Counts that may be given as a percentage: `3` or `"25%"`.

use serde_json::Value;

use super::path::Path;
use crate::status::Problems;

const NOT_A_PERCENTAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// A count, or a percentage of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntOrPercent {
    Int(i64),
    Percent(i64),
}

impl IntOrPercent {
    /// Parses a value; `None` if it is neither an integer nor digits followed by a percent sign.
    pub fn read(value: &Value) -> Option<Self> {
        if let Some(number) = value.as_i64() {
            return Some(Self::Int(number));
        }
        let digits = value.as_str()?.strip_suffix('%')?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        // A percentage that overflows acts like any other above a hundred.
        Some(Self::Percent(digits.parse().unwrap_or(i64::MAX)))
    }

    pub fn is_zero(self) -> bool {
        matches!(self, Self::Int(0) | Self::Percent(0))
    }
}

/// Whether `value` is set and greater than zero.
pub(super) fn is_positive(value: &Value) -> bool {
    IntOrPercent::read(value).is_some_and(|v| !v.is_zero())
}

/// Refuses negative counts and malformed percentages; an absent value is fine.
pub(super) fn validate(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    match (value, IntOrPercent::read(value)) {
        (Value::Null, _) | (_, Some(IntOrPercent::Percent(_))) => {}
        (_, Some(IntOrPercent::Int(number))) => {
            if number < 0 {
                problems.invalid(path, number, "must be greater than or equal to 0");
            }
        }
        (_, None) => problems.invalid(path, value.clone(), NOT_A_PERCENTAGE),
    }
}

/// Refuses a percentage above 100.
pub(super) fn validate_at_most_all(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    if let Some(IntOrPercent::Percent(share)) = IntOrPercent::read(value)
        && share > 100
    {
        problems.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_and_shares_are_read() {
        for (value, read) in [
            (json!(3), Some(IntOrPercent::Int(3))),
            (json!("25%"), Some(IntOrPercent::Percent(25))),
            (json!("0%"), Some(IntOrPercent::Percent(0))),
            (json!("25"), None),
            (json!("%"), None),
            (json!("-1%"), None),
            (json!("1.5%"), None),
            (json!(1.5), None),
        ] {
            assert_eq!(IntOrPercent::read(&value), read, "{value}");
        }
    }

    #[test]
    fn refusals_say_why() {
        for (value, complaint) in [
            (json!(null), ""),
            (json!("100%"), ""),
            (json!(1000), ""),
            (json!(-1), "must be greater than or equal to 0"),
            (
                json!("x"),
                "must be a numeric string followed by an ending '%'",
            ),
            (json!("101%"), "must not be greater than 100%"),
            (
                json!("99999999999999999999%"),
                "must not be greater than 100%",
            ),
        ] {
            let mut problems = Problems::new();
            validate(&value, &Path::At("p"), &mut problems);
            validate_at_most_all(&value, &Path::At("p"), &mut problems);
            assert_eq!(problems.is_empty(), complaint.is_empty(), "{value}");
            assert!(problems.iter().all(|p| p.detail.contains(complaint)));
        }
    }
}
